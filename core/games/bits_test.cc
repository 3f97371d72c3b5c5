#include "games/bits.h"

#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;

int main() {
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (int num_bits = 0; num_bits <= 192; ++num_bits) {
    const uint64_t words[3] = {rng.next64(), rng.next64() & rng.next64(), ~uint64_t{0}};
    std::vector<uint16_t> expected;
    for (int bit = 0; bit < num_bits; ++bit) {
      if (words[bit / 64] >> (bit % 64) & 1) expected.push_back(static_cast<uint16_t>(bit));
    }
    // One guard value beyond the required space.
    std::vector<uint16_t> out(static_cast<size_t>(num_bits) + 1, 0xfefe);
    const int count = list_set_bits(words, num_bits, out.data());
    TENGEN_CHECK(out.back() == 0xfefe);
    out.resize(static_cast<size_t>(count));
    TENGEN_CHECK(out == expected);

    std::vector<uint16_t> visited;
    for_each_bit(words[0], [&](int bit) { visited.push_back(static_cast<uint16_t>(bit)); });
    TENGEN_CHECK(static_cast<int>(visited.size()) == std::popcount(words[0]));
  }
  return 0;
}
