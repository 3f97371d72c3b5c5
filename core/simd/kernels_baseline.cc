#define TENGEN_KERNEL_SET baseline
#define TENGEN_KERNEL_NAME "baseline"
#define TENGEN_VECTOR_BYTES 16
#include "simd/kernels_impl.h"
