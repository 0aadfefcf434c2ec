/* src/variant: to be built */ typedef int khub__variant_empty;
