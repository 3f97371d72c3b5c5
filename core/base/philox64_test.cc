#include "base/philox64.h"

#include <vector>

#include "base/testing.h"

using namespace tengen;

int main() {
  // Known-answer test of Random123 (kat_vectors, philox4x64 with 10 rounds).
  using Counter = std::array<uint64_t, 4>;
  TENGEN_CHECK(
      (philox4x64({0, 0, 0, 0}, {0, 0}) ==
       Counter{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}));
  TENGEN_CHECK(
      (philox4x64({~0ull, ~0ull, ~0ull, ~0ull}, {~0ull, ~0ull}) ==
       Counter{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}));
  TENGEN_CHECK(
      (philox4x64({0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
                  {0x452821e638d01377, 0xbe5466cf34e90c6c}) ==
       Counter{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}));

  // Each row has its own blocks of random numbers, and the counter carries into its higher words.
  const std::array<uint64_t, 4> counter = {~0ull - 3, ~0ull, 5, 0};
  std::vector<double> together(4 * 5), alone(5);
  fill_uniforms({1, 2}, counter, 5, together);
  for (uint64_t row = 0; row < 4; ++row) {
    // Two blocks per row; the counter's lowest word increases by 2 per row.
    std::array<uint64_t, 4> from = counter;
    from[0] += 2 * row;
    if (2 * row > 3) from = {from[0], 0, 6, 0};
    fill_uniforms({1, 2}, from, 5, alone);
    for (size_t i = 0; i < 5; ++i) TENGEN_CHECK(alone[i] == together[5 * row + i]);
  }
  for (const double uniform : together) TENGEN_CHECK(uniform >= 0.0 && uniform < 1.0);
  return 0;
}
