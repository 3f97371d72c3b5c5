#pragma once
// Sets of points of a Go board of up to 19 x 19, as one bit per point (row * width + column).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "games/bits.h"

namespace tengen {

inline constexpr int kGoMaxSize = 19;
inline constexpr int kGoMaxPoints = kGoMaxSize * kGoMaxSize;

struct PointSet {
  static constexpr size_t kNumWords = (kGoMaxPoints + 63) / 64;
  std::array<uint64_t, kNumWords> words{};

  bool has(int point) const { return words[static_cast<size_t>(point >> 6)] >> (point & 63) & 1; }
  void add(int point) { words[static_cast<size_t>(point >> 6)] |= uint64_t{1} << (point & 63); }
  void remove(int point) {
    words[static_cast<size_t>(point >> 6)] &= ~(uint64_t{1} << (point & 63));
  }
  // The lowest point; -1 if the set is empty.
  int first() const {
    for (size_t i = 0; i < kNumWords; ++i) {
      if (words[i] != 0) return static_cast<int>(i) * 64 + std::countr_zero(words[i]);
    }
    return -1;
  }
  int count() const {
    int sum = 0;
    for (const uint64_t word : words) sum += std::popcount(word);
    return sum;
  }

  friend bool operator==(const PointSet&, const PointSet&) = default;
  friend PointSet operator|(PointSet a, const PointSet& b) {
    for (size_t i = 0; i < kNumWords; ++i) a.words[i] |= b.words[i];
    return a;
  }
  friend PointSet operator&(PointSet a, const PointSet& b) {
    for (size_t i = 0; i < kNumWords; ++i) a.words[i] &= b.words[i];
    return a;
  }
  // The points of `a` that are not in `b`.
  friend PointSet operator-(PointSet a, const PointSet& b) {
    for (size_t i = 0; i < kNumWords; ++i) a.words[i] &= ~b.words[i];
    return a;
  }
};

// Calls f(point) for every point of the set, lowest first.
template <class F>
void for_each_point(const PointSet& set, F&& f) {
  for (size_t i = 0; i < PointSet::kNumWords; ++i) {
    for_each_bit(set.words[i], [&](int bit) { f(static_cast<int>(i) * 64 + bit); });
  }
}

}  // namespace tengen
