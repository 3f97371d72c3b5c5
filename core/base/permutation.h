#pragma once
// A pseudo-random permutation of 0 .. size - 1 with random access to its elements.

#include <array>
#include <bit>
#include <cstdint>

#include "base/hash.h"

namespace tengen {

// A keyed bijection of [0, size): a balanced Feistel network on the next even number of bits. The
// network is applied until the result is in range, on average fewer than four times.
// Source: Black and Rogaway 2002, "Ciphers with arbitrary finite domains", section 5 (cycle
// walking). Differs from the paper: the round function is a hash, because there is no adversary.
class Permutation {
 public:
  // Creates the permutation of [0, size) that `key` selects. Precondition: size >= 1.
  Permutation(uint64_t key, uint32_t size)
      : size_(size), half_bits_((static_cast<uint32_t>(std::bit_width(size - 1)) + 1) / 2) {
    for (uint64_t round = 0; round < keys_.size(); ++round) {
      keys_[round] = mix64(key + (round + 1) * 0x9e3779b97f4a7c15ull);
    }
  }

  // Returns element `place` of the permutation. Precondition: place < size.
  uint32_t operator()(uint32_t place) const {
    do {
      place = walk(place);
    } while (place >= size_);
    return place;
  }

 private:
  uint32_t walk(uint32_t place) const {
    const uint32_t mask = (uint32_t{1} << half_bits_) - 1;
    uint32_t left = place >> half_bits_;
    uint32_t right = place & mask;
    for (const uint64_t key : keys_) {
      const uint32_t mixed = static_cast<uint32_t>(mix64(key ^ right) >> 32) & mask;
      const uint32_t next = left ^ mixed;
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint32_t size_;
  uint32_t half_bits_;
  std::array<uint64_t, 8> keys_;
};

}  // namespace tengen
