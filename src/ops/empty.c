/* src/ops: to be built */ typedef int khub__ops_empty;
