#include "base/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace tengen {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c_portable(std::string_view bytes, uint32_t crc) {
  crc = ~crc;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  }
  return ~crc;
}

#ifdef __SSE4_2__
uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  uint64_t wide = static_cast<uint32_t>(~crc);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  uint32_t narrow = static_cast<uint32_t>(wide);
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*at));
  return ~narrow;
}
#else
uint32_t crc32c(std::string_view bytes, uint32_t crc) { return crc32c_portable(bytes, crc); }
#endif

}  // namespace tengen
