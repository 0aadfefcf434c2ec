/* src/tensor: to be built */ typedef int khub__tensor_empty;
