#include "base/philox64.h"

namespace tengen {
namespace {

struct Wide {
  uint64_t high;
  uint64_t low;
};

// Returns the 128-bit product of `a` and `b` in two halves, as C++ has no standard 128-bit type.
Wide multiply(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
  const uint64_t low = a0 * b0;
  const uint64_t middle = a1 * b0 + (low >> 32);
  const uint64_t other = a0 * b1 + (middle & 0xFFFFFFFFu);
  return {a1 * b1 + (middle >> 32) + (other >> 32), a * b};
}

// Adds `amount` to a 256-bit counter, stored with the least significant word first.
void add(std::array<uint64_t, 4>& counter, uint64_t amount) {
  counter[0] += amount;
  bool carries = counter[0] < amount;
  for (size_t i = 1; i < counter.size() && carries; ++i) carries = ++counter[i] == 0;
}

}  // namespace

std::array<uint64_t, 4> philox4x64(std::array<uint64_t, 4> counter, std::array<uint64_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const Wide p0 = multiply(0xD2E7470EE14C6C93u, counter[0]);
    const Wide p1 = multiply(0xCA5A826395121157u, counter[2]);
    counter = {p1.high ^ counter[1] ^ key[0], p1.low, p0.high ^ counter[3] ^ key[1], p0.low};
    key[0] += 0x9E3779B97F4A7C15u;
    key[1] += 0xBB67AE8584CAA73Bu;
  }
  return counter;
}

void fill_uniforms(std::array<uint64_t, 2> key, std::array<uint64_t, 4> counter, size_t row_size,
                   std::span<double> uniforms) {
  for (size_t first = 0; first < uniforms.size(); first += row_size) {
    for (size_t i = 0; i < row_size; i += 4) {
      add(counter, 1);  // numpy increments the counter before it uses it
      const std::array<uint64_t, 4> block = philox4x64(counter, key);
      for (size_t j = 0; j < 4 && i + j < row_size; ++j)
        uniforms[first + i + j] = static_cast<double>(block[j] >> 11) * 0x1.0p-53;
    }
  }
}

}  // namespace tengen
