// Replays inputs to the fuzz targets: the seeds of each target, random mutations of the seeds, and
// inputs that once revealed a fault. `fuzz_test TARGET TIMES` replays only this target, with TIMES
// mutations of each seed.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "fuzz/target.h"

using namespace tengen;
using tengen::fuzz::Target;

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__)
// No target may allocate more in a single allocation.
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=1024"; }
#endif

namespace {

int num_changed = 60;

// Truncates the seed, overwrites a number with an extreme value, repeats a part, or flips a bit.
std::string changed(std::string seed, Rng& rng) {
  if (seed.empty()) return seed;
  const auto at = [&] { return rng.below(static_cast<uint32_t>(seed.size())); };
  constexpr uint64_t kExtremes[] = {0,      1,          0x7f,       0xff,           0x7fff,
                                    0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX / 2, UINT64_MAX};
  for (uint32_t i = 0; i <= rng.below(3); ++i) {
    const uint32_t place = at();
    switch (rng.below(4)) {
      case 0:
        seed.resize(place + 1);
        break;
      case 1: {
        const uint64_t number = kExtremes[rng.below(std::size(kExtremes))];
        const size_t width = std::min<size_t>(size_t{1} << rng.below(4), seed.size() - place);
        std::memcpy(seed.data() + place, &number, width);
        break;
      }
      case 2: {
        const std::string part = seed.substr(place, rng.below(64) + 1);
        seed.insert(at(), part);
        break;
      }
      default:
        seed[place] = static_cast<char>(seed[place] ^ (1 << rng.below(8)));
    }
  }
  return seed;
}

int replay(const Target& target) {
  int num_run = 0;
  const auto run = [&](const std::string& bytes) {
    target.run(bytes);
    ++num_run;
  };
  run("");
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (const std::string& seed : target.seeds()) {
    run(seed);
    for (int i = 0; i < num_changed; ++i) run(changed(seed, rng));
  }
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator(fs::path(TENGEN_FUZZ_FOUND) / target.name, none)) {
    std::ifstream file(entry.path(), std::ios::binary);
    run(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return num_run;
}

}  // namespace

int main(int count, char** words) {
  if (count > 2) num_changed = std::atoi(words[2]);
  for (const Target& target : fuzz::targets()) {
    if (count > 1 && std::strcmp(words[1], target.name) != 0) continue;
    std::printf("%s: ", target.name);
    std::fflush(stdout);
    std::printf("%d inputs\n", replay(target));
  }
  return 0;
}
