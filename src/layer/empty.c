/* src/layer: to be built */ typedef int khub__layer_empty;
