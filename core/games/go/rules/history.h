#pragma once
// Stores the earlier boards of a game as 64-bit keys, to test whether a board has occurred before.
//
// A search copies its root's state at every simulation, so a copy contains only the used part and
// does not allocate. Keys are stored in order of play; those of one bucket form a linked list.
//
// Boards with equal keys are treated as equal. A game of 722 moves on 19x19 makes fewer than 2^28
// comparisons of different boards (722 moves x 361 points x 722 boards; in practice some hundreds
// per move), so it confuses two boards with a probability below 2^-36.

#include <array>
#include <cstdint>
#include <cstring>

namespace tengen {

class KeyHistory {
 public:
  static constexpr int kMaxKeys = 4 * 19 * 19 + 1;

  KeyHistory() : KeyHistory(1) {}
  // `num_buckets` is a power of two, at most kMaxBuckets. Fast with up to twice as many keys.
  explicit KeyHistory(int num_buckets) : num_buckets_(static_cast<uint32_t>(num_buckets)) {
    clear();
  }
  KeyHistory(const KeyHistory& other) { copy(other); }
  KeyHistory& operator=(const KeyHistory& other) {
    if (this != &other) copy(other);
    return *this;
  }

  void clear() {
    num_keys_ = 0;
    std::memset(first_.data(), 0, first_bytes());
  }
  // Precondition: the history contains fewer than kMaxKeys keys.
  void add(uint64_t key) {
    uint16_t& first = first_[bucket(key)];
    keys_[num_keys_] = key;
    earlier_[num_keys_] = first;
    first = ++num_keys_;
  }
  bool contains(uint64_t key) const {
    for (uint32_t number = first_[bucket(key)]; number != 0; number = earlier_[number - 1]) {
      if (keys_[number - 1] == key) return true;
    }
    return false;
  }

  static constexpr int kMaxBuckets = 512;

 private:
  size_t bucket(uint64_t key) const { return key & (num_buckets_ - 1u); }
  size_t first_bytes() const { return num_buckets_ * sizeof(uint16_t); }

  void copy(const KeyHistory& other) {
    num_buckets_ = other.num_buckets_;
    num_keys_ = other.num_keys_;
    std::memcpy(first_.data(), other.first_.data(), first_bytes());
    std::memcpy(keys_.data(), other.keys_.data(), num_keys_ * sizeof(uint64_t));
    std::memcpy(earlier_.data(), other.earlier_.data(), num_keys_ * sizeof(uint16_t));
  }

  uint32_t num_buckets_;
  uint16_t num_keys_ = 0;
  std::array<uint16_t, kMaxBuckets> first_;  // 1-based index of the bucket's newest key; 0 if empty
  std::array<uint64_t, kMaxKeys> keys_;      // in order of play
  std::array<uint16_t, kMaxKeys> earlier_;   // 1-based index of the previous key in the bucket
};

}  // namespace tengen
