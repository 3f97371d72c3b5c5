#pragma once
// Reusable buffers for batches.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/shared_memory.h"

namespace tengen::store {

// Buffers of one size. Page faults make a fresh buffer more expensive than the copy into it, so
// returned buffers are reused. Thread-safe; buffers may outlive the arena.
class Arena {
 public:
  explicit Arena(uint64_t num_bytes) : shared_(std::make_shared<Shared>()), num_bytes_(num_bytes) {}

  // Returns a buffer with unspecified contents. It returns to the arena when its last owner drops
  // it.
  std::shared_ptr<std::byte> take() {
    std::unique_ptr<transport::SharedMemory> buffer;
    {
      const std::scoped_lock lock(shared_->mutex);
      if (!shared_->free.empty()) {
        buffer = std::move(shared_->free.back());
        shared_->free.pop_back();
      }
    }
    if (!buffer) {
      buffer =
          std::make_unique<transport::SharedMemory>(transport::SharedMemory::anonymous(num_bytes_));
    }
    std::byte* data = buffer->data();
    auto give_back = [shared = shared_, held = std::shared_ptr(std::move(buffer))](std::byte*) {
      const std::scoped_lock lock(shared->mutex);
      shared->free.push_back(std::make_unique<transport::SharedMemory>(std::move(*held)));
    };
    return {data, std::move(give_back)};
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::vector<std::unique_ptr<transport::SharedMemory>> free;
  };
  const std::shared_ptr<Shared> shared_;
  const uint64_t num_bytes_;
};

}  // namespace tengen::store
