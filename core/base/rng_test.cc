#include "base/rng.h"

#include "base/testing.h"

using namespace tengen;

int main() {
  // Known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
  using Counter = std::array<uint32_t, 4>;
  TENGEN_CHECK((philox4x32({0, 0, 0, 0}, {0, 0}) ==
                Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  TENGEN_CHECK((philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
                Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  TENGEN_CHECK(
      (philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
       Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));

  // A stream depends on each of its five numbers.
  const auto first = [](uint64_t seed, uint64_t generation, uint64_t game, uint32_t ply,
                        Purpose purpose) {
    return Rng(seed, generation, game, ply, purpose).next64();
  };
  const uint64_t base = first(1, 2, 3, 4, Purpose::kTest);
  TENGEN_CHECK(base == first(1, 2, 3, 4, Purpose::kTest));
  TENGEN_CHECK(base != first(2, 2, 3, 4, Purpose::kTest));
  TENGEN_CHECK(base != first(1, 3, 3, 4, Purpose::kTest));
  TENGEN_CHECK(base != first(1, 2, 4, 4, Purpose::kTest));
  TENGEN_CHECK(base != first(1, 2, 3, 5, Purpose::kTest));
  TENGEN_CHECK(base != first(1, 2, 3, 4, Purpose::kGumbel));
  TENGEN_CHECK(first(1, 2, 3, 4, Purpose::kTest) != first(1, 3, 2, 4, Purpose::kTest));
  return 0;
}
