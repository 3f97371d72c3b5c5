#define TENGEN_KERNEL_SET baseline
#define TENGEN_KERNEL_NAME "baseline"
#include "simd/kernels_impl.h"
