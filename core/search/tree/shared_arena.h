#pragma once
// The memory of a tree that several threads grow concurrently. Blocks never move. A thread takes
// chunks under a lock and allocates blocks from its chunk without a lock. Offsets are the same as
// in Arena.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "search/tree/arena.h"

namespace tengen {

// The memory of a shared tree. Threads use their cursors concurrently; offsets need a lock.
class SharedArena {
 public:
  using Offset = Arena::Offset;

  // One thread's view of the arena: reads every block, and allocates blocks from its own chunk.
  class Cursor {
   public:
    using Offset = SharedArena::Offset;
    static constexpr bool kShared = true;

    explicit Cursor(SharedArena* arena) : arena_(arena) {}

    // Abandons the chunk; the next allocate() takes a new one.
    void clear() { next_ = end_ = 0; }

    template <class T>
    T* at(Offset offset) const {
      uint64_t* chunk = arena_->chunks_[offset / kChunkWords].get();
      return reinterpret_cast<T*>(chunk + offset % kChunkWords);
    }

    // Returns `num_bytes` of uninitialised memory, aligned to 8 bytes; at most a chunk.
    Offset allocate(size_t num_bytes) {
      const size_t num_words = (num_bytes + 7) / 8;
      if (next_ + num_words > end_) {
        end_ = arena_->take_chunk();
        next_ = end_ - kChunkWords;
        if (next_ == 0) next_ = 1;  // word 0 is kNull
      }
      const auto offset = static_cast<Offset>(next_);
      next_ += num_words;
      return offset;
    }

   private:
    SharedArena* arena_;
    size_t next_ = 0;
    size_t end_ = 0;
  };

  // Drops all blocks but keeps the memory. No thread may use the arena; clear each cursor too.
  void clear() { num_taken_ = 0; }

 private:
  static constexpr size_t kChunkWords = size_t{1} << 19;  // 4 MiB
  static constexpr size_t kMaxChunks = (size_t{UINT32_MAX} + 1) / kChunkWords;

  // Takes a new chunk and returns the offset of its end.
  size_t take_chunk() {
    const std::lock_guard hold(mutex_);
    if (num_taken_ == kMaxChunks) {
      throw Error("tree (32 GiB) must not grow any more; use fewer simulations");
    }
    if (chunks_[num_taken_] == nullptr) {
      chunks_[num_taken_] = std::make_unique_for_overwrite<uint64_t[]>(kChunkWords);
    }
    return ++num_taken_ * kChunkWords;
  }

  std::array<std::unique_ptr<uint64_t[]>, kMaxChunks> chunks_;
  size_t num_taken_ = 0;
  std::mutex mutex_;
};

}  // namespace tengen
