/* src/model: to be built */ typedef int khub__model_empty;
