#pragma once
// Lists the set bits of a bitboard. Handles one byte at a time instead of one bit, because a search
// lists the legal actions of every node that it expands.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace tengen {

using BytePositions = std::array<uint16_t, 8>;

// kBytePositions[b]: the positions of the set bits of b, lowest first, padded with zeros.
inline constexpr std::array<BytePositions, 256> kBytePositions = [] {
  std::array<BytePositions, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    int count = 0;
    for (uint16_t bit = 0; bit < 8; ++bit) {
      if (byte >> bit & 1) table[byte][count++] = bit;
    }
  }
  return table;
}();

// Writes the positions of the set bits among the first `num_bits` of `words`, lowest first; returns
// their number. `out` needs space for `num_bits` values, because a full byte always stores eight
// values; the next byte overwrites the unused ones.
inline int list_set_bits(const uint64_t* words, int num_bits, uint16_t* out) {
  int count = 0;
  const int num_whole = num_bits & ~7;
  for (int base = 0; base < num_whole; base += 8) {
    const unsigned byte = static_cast<unsigned>(words[base >> 6] >> (base & 63)) & 0xff;
    BytePositions positions = kBytePositions[byte];
    for (uint16_t& position : positions) position = static_cast<uint16_t>(position + base);
    std::memcpy(out + count, positions.data(), sizeof(positions));
    count += std::popcount(byte);
  }
  for (int bit = num_whole; bit < num_bits; ++bit) {
    if (words[bit >> 6] >> (bit & 63) & 1) out[count++] = static_cast<uint16_t>(bit);
  }
  return count;
}

// Calls f(position) for every set bit of `word`, lowest first.
template <class F>
inline void for_each_bit(uint64_t word, F&& f) {
  for (; word != 0; word &= word - 1) f(std::countr_zero(word));
}

}  // namespace tengen
