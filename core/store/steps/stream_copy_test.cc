#include "store/steps/stream_copy.h"

#include <vector>

#include "base/testing.h"

using namespace tengen::store::engine;

namespace {

// Copies `num_bytes` from and to odd places, and looks at every byte, also around them.
void check(uint64_t num_bytes, uint64_t from_offset, uint64_t to_offset) {
  constexpr uint64_t kMargin = 64;
  const auto value = [](uint64_t i) { return static_cast<std::byte>(i * 7 + i / 256 + 1); };
  std::vector<std::byte> from(num_bytes + kMargin);
  for (uint64_t i = 0; i < from.size(); ++i) from[i] = value(i);
  std::vector<std::byte> to(to_offset + num_bytes + kMargin, std::byte{0});
  stream_copy(to.data() + to_offset, from.data() + from_offset, num_bytes);
  for (uint64_t i = 0; i < to.size(); ++i) {
    const bool is_copied = i >= to_offset && i < to_offset + num_bytes;
    TENGEN_CHECK(to[i] == (is_copied ? value(i - to_offset + from_offset) : std::byte{0}));
  }
}

}  // namespace

int main() {
  for (const uint64_t num_bytes : {uint64_t{0}, uint64_t{63}, kMinStreamBytes - 1, kMinStreamBytes,
                                   kMinStreamBytes + 1, kMinStreamBytes + 63, uint64_t{112'640}}) {
    for (uint64_t i = 0; i < 64; i += 7) check(num_bytes, i % 64, (3 * i + 1) % 64);
    check(num_bytes, 0, 0);
  }
  return 0;
}
