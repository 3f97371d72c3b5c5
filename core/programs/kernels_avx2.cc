// Compiled with the flags for AVX2 (CMakeLists.txt). Empty on processors other than x86-64.
#if defined(__x86_64__)
#define TENGEN_KERNEL_SET avx2
#define TENGEN_VECTOR_BYTES 32
#include "programs/kernels_impl.h"
#endif
