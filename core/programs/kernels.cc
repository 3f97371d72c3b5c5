#include "programs/kernels.h"

#include "simd/kernels.h"

namespace tengen::programs {

namespace baseline {
extern const Kernels kTable;
}
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}

const Kernels& kernels([[maybe_unused]] std::string_view instruction_set) {
#if defined(__x86_64__)
  if (instruction_set == "avx512") return avx512::kTable;
  if (instruction_set == "avx2") return avx2::kTable;
#endif
  return baseline::kTable;
}

const Kernels& kernels() {
  static const Kernels& chosen = kernels(simd::kernels().name);
  return chosen;
}

}  // namespace tengen::programs
