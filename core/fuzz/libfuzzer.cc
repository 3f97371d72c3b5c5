// The entry points of libFuzzer. The environment variable TENGEN_FUZZ_TARGET selects the target. If
// TENGEN_FUZZ_SEEDS is set, the program writes the seeds of all targets to that folder and exits.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/target.h"

namespace {

tengen::fuzz::Target chosen() {
  const char* const name = std::getenv("TENGEN_FUZZ_TARGET");
  for (const tengen::fuzz::Target& target : tengen::fuzz::targets()) {
    if (name != nullptr && std::strcmp(name, target.name) == 0) return target;
  }
  std::fprintf(stderr, "TENGEN_FUZZ_TARGET (%s) must be one of:", name == nullptr ? "" : name);
  for (const auto& target : tengen::fuzz::targets()) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

void write_seeds(const std::filesystem::path& folder) {
  for (const tengen::fuzz::Target& target : tengen::fuzz::targets()) {
    std::filesystem::create_directories(folder / target.name);
    int number = 0;
    for (const std::string& seed : target.seeds()) {
      const std::string name = "seed-" + std::to_string(number++);
      std::ofstream file(folder / target.name / name, std::ios::binary);
      file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    }
    std::printf("%s\n", target.name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* const folder = std::getenv("TENGEN_FUZZ_SEEDS")) {
    write_seeds(folder);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tengen::fuzz::Target target = chosen();
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
