// Compiled with the flags of the core (CMakeLists.txt), for any processor.
#define TENGEN_KERNEL_SET baseline
#define TENGEN_VECTOR_BYTES 16
#include "programs/kernels_impl.h"
