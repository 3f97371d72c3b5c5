// Compiled with the flags for AVX-512 (CMakeLists.txt). Empty on processors other than x86-64.
#if defined(__x86_64__) || defined(_M_X64)
#define TENGEN_KERNEL_SET avx512
#define TENGEN_KERNEL_NAME "avx512"
#define TENGEN_VECTOR_BYTES 64
#include "simd/kernels_impl.h"
#endif
