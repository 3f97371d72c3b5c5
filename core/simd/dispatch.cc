#include <cstring>
#include <initializer_list>

#include "simd/kernels.h"

namespace tengen::simd {

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
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (std::strcmp(name, "avx512") == 0) {
    const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512cd");
    return has ? &avx512::kTable : nullptr;
  }
  if (std::strcmp(name, "avx2") == 0) {
    const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                     __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    return has ? &avx2::kTable : nullptr;
  }
#endif
  return std::strcmp(name, "baseline") == 0 ? &baseline::kTable : nullptr;
}

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    for (const char* name : {"avx512", "avx2"}) {
      if (const Kernels* table = kernels_by_name(name)) return *table;
    }
    return baseline::kTable;
  }();
  return chosen;
}

}  // namespace tengen::simd
