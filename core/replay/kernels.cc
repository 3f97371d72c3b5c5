#include "replay/kernels.h"

#include <string>

#include "simd/kernels.h"

namespace tengen::replay {

namespace baseline {
extern const Kernels kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
#endif

const Kernels* kernels_by_name(const char* name) {
  if (!simd::kernels_by_name(name)) return nullptr;
#if defined(__x86_64__)
  if (std::string(name) == "avx512") return &avx512::kTable;
  if (std::string(name) == "avx2") return &avx2::kTable;
#endif
  return &baseline::kTable;
}

const Kernels& kernels() {
  static const Kernels& chosen = *kernels_by_name(simd::kernels().name);
  return chosen;
}

}  // namespace tengen::replay
