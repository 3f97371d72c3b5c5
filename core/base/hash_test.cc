#include "base/hash.h"

#include <bit>
#include <set>
#include <utility>

#include "base/testing.h"

using namespace tengen;

int main() {
  // In the small tables that games use, the 64-bit halves of all keys are distinct.
  std::set<uint64_t> halves;
  uint64_t count = 0;
  for (uint64_t table = 0; table < 8; ++table) {
    for (uint64_t index = 0; index < 400; ++index) {
      const Key128 key = zobrist_key(table, index);
      halves.insert(key.lo);
      halves.insert(key.hi);
      count += 2;
    }
  }
  TENGEN_CHECK(halves.size() == count);

  const Key128 key = zobrist_key(1, 2);
  TENGEN_CHECK(combine(combine(key, 1), 2) == combine(combine(key, 1), 2));
  TENGEN_CHECK(!(combine(combine(key, 1), 2) == combine(combine(key, 2), 1)));
  TENGEN_CHECK((key ^ key) == Key128{});
  // Changing one bit of the input changes about half of the output bits.
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    changed += std::popcount(mix64(12345) ^ mix64(12345 ^ uint64_t{1} << bit));
  }
  TENGEN_CHECK(changed > 64 * 28 && changed < 64 * 36);
  return 0;
}
