/* src/kernel: to be built */ typedef int khub__kernel_empty;
