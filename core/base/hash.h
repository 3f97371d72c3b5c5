#pragma once
// A 64-bit hash function, and 128-bit keys of positions and evaluations.

#include <cstdint>

namespace tengen {

// A bijective hash of 64 bits. Source: Stafford 2011, "Better bit mixing", variant 13.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A 128-bit hash with two independently mixed halves. Positions with equal keys count as equal.
struct Key128 {
  uint64_t lo = 0;
  uint64_t hi = 0;

  friend constexpr bool operator==(const Key128&, const Key128&) = default;
  constexpr Key128 operator^(const Key128& other) const { return {lo ^ other.lo, hi ^ other.hi}; }
  constexpr Key128& operator^=(const Key128& other) {
    lo ^= other.lo;
    hi ^= other.hi;
    return *this;
  }
};

// Returns entry `index` of Zobrist table `table`: a fixed pseudo-random key.
constexpr Key128 zobrist_key(uint64_t table, uint64_t index) {
  const uint64_t base = mix64(table * 0x9e3779b97f4a7c15ull + index + 1);
  return {mix64(base ^ 0x243f6a8885a308d3ull), mix64(base ^ 0x13198a2e03707344ull)};
}

// Returns the hash of `key` followed by `word`. The order of calls affects the result.
constexpr Key128 combine(const Key128& key, uint64_t word) {
  const uint64_t mixed = mix64(word + 0x9e3779b97f4a7c15ull);
  return {mix64(key.lo ^ mixed), mix64(key.hi + (mixed ^ 0xa4093822299f31d0ull))};
}

}  // namespace tengen
