from pathlib import Path

import tvm_ffi

relu = tvm_ffi.load_module(str(Path(__file__).parent / "_my_relu_cpu_1.so")).relu
