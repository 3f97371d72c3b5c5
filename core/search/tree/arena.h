#pragma once
// A growing buffer for all nodes of a tree, addressed with 32-bit offsets in units of 8 bytes. A
// node needs no allocation of its own, and dropping a tree only resets a counter.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"
#include "simd/kernels.h"

namespace tengen {

// The memory of a tree. Not thread-safe. Pointers from at() are valid until the next allocate().
class Arena {
 public:
  using Offset = uint32_t;
  static constexpr Offset kNull = 0;
  static constexpr bool kShared = false;  // see BasicTree

  // Drops all blocks but keeps the memory.
  void clear() { used_ = 1; }  // word 0 is kNull

  template <class T>
  T* at(Offset offset) {
    return reinterpret_cast<T*>(words_.get() + offset);
  }
  template <class T>
  const T* at(Offset offset) const {
    return reinterpret_cast<const T*>(words_.get() + offset);
  }

  // Returns `num_bytes` of uninitialised memory, aligned to 8 bytes.
  Offset allocate(size_t num_bytes) {
    const size_t num_words = (num_bytes + 7) / 8;
    if (used_ + num_words > capacity_) grow(used_ + num_words);
    const Offset offset = static_cast<Offset>(used_);
    used_ += num_words;
    return offset;
  }

  size_t used_bytes() const { return used_ * 8; }

 private:
  static constexpr size_t kSlackWords = (simd::kLanes * sizeof(float)) / 8;

  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };

  void grow(size_t wanted) {
    size_t capacity = capacity_ < 1024 ? 1024 : capacity_;
    while (capacity < wanted) capacity += capacity / 2;
    if (capacity > UINT32_MAX) {
      throw Error("tree (" + std::to_string(wanted * 8) +
                  " bytes) must stay under 32 GiB; use fewer simulations");
    }
    // Adds slack, so that full-vector reads past the last block stay inside the buffer.
    void* grown = std::realloc(words_.get(), (capacity + kSlackWords) * 8);
    if (grown == nullptr) throw std::bad_alloc();
    static_cast<void>(words_.release());
    words_.reset(static_cast<uint64_t*>(grown));
    capacity_ = capacity;
  }

  std::unique_ptr<uint64_t, Free> words_;
  size_t used_ = 1;
  size_t capacity_ = 0;
};

}  // namespace tengen
