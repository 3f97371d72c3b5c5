// Compiled with the flags for AVX512 (CMakeLists.txt). Empty on processors other than x86-64.
#if defined(__x86_64__)
#define TENGEN_KERNEL_SET avx512
#define TENGEN_VECTOR_BYTES 64
#include "programs/kernels_impl.h"
#endif
