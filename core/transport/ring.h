#pragma once
// A lock-free message queue from one process to another in shared memory, without system calls.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/error.h"

namespace tengen::transport {

// For one producer thread and one consumer thread. If either dies, at any instant, each message is
// either complete or absent. Messages are contiguous and never wrap around the end, so both sides
// access them in place. Callers implement waiting and waking.
//
// Staged messages become visible to the consumer with publish(), and freed space to the producer
// with release(). So a side can first record its next action elsewhere, and a replacement process
// can resume with resume_producer() or resume_consumer().
class Ring {
 public:
  // Returns the bytes of memory for a ring with `capacity` bytes of messages.
  static constexpr uint64_t num_bytes(uint32_t capacity) { return sizeof(Shared) + capacity; }

  // `memory` is aligned to 64 bytes, and is zeroed or contains a ring of the same capacity. The
  // capacity is a power of two, at least 64. Both sides create a Ring over the same memory.
  Ring(std::byte* memory, uint32_t capacity)
      : shared_(reinterpret_cast<Shared*>(memory)),
        bytes_(memory + sizeof(Shared)),
        capacity_(capacity),
        head_(shared_->head.load(std::memory_order_acquire)),
        tail_(shared_->tail.load(std::memory_order_acquire)) {
    if (capacity < 64 || (capacity & (capacity - 1)) != 0) {
      throw Error("capacity (" + std::to_string(capacity) +
                  ") must be a power of two of at least 64; round it up");
    }
  }

  // Returns the maximum length of a message in bytes.
  uint32_t max_message() const { return capacity_ / 2 - kHeader; }

  // Producer: returns space for `num_bytes` <= max_message(), aligned to 8, or null if full.
  std::byte* reserve(uint32_t num_bytes) {
    const uint64_t tail = shared_->tail.load(std::memory_order_acquire);
    const uint64_t needed = padded(num_bytes);
    const uint64_t to_end = capacity_ - (head_ & (capacity_ - 1));
    const uint64_t skipped = to_end < needed ? to_end : 0;
    if (head_ + skipped + needed - tail > capacity_) return nullptr;
    if (skipped > 0) set_length(head_, kSkip);
    reserved_ = head_ + skipped;
    return bytes_ + (reserved_ & (capacity_ - 1)) + kHeader;
  }
  // Producer: stages a message of the first `num_bytes` bytes of the last reserved space.
  void stage(uint32_t num_bytes) {
    set_length(reserved_, num_bytes);
    head_ = reserved_ + padded(num_bytes);
  }
  // Producer: makes the staged messages visible to the consumer.
  void publish() { shared_->head.store(head_, std::memory_order_release); }
  void commit(uint32_t num_bytes) {
    stage(num_bytes);
    publish();
  }
  uint64_t staged_head() const { return head_; }
  // Resumes for an earlier producer that staged messages up to `head`, and publishes them.
  void resume_producer(uint64_t head) {
    head_ = head;
    publish();
  }

  // Consumer: returns the oldest message, or an empty span with a null address if there is none.
  // The span is valid until release(). Throws Error if the producer wrote an invalid message.
  std::span<const std::byte> front() {
    uint64_t tail = tail_;
    const uint64_t head = shared_->head.load(std::memory_order_acquire);
    if (head == tail) return {};
    uint32_t length = length_at(tail);
    if (length == kSkip) {
      tail += capacity_ - (tail & (capacity_ - 1));
      length = length_at(tail);
    }
    const uint64_t to_end = capacity_ - (tail & (capacity_ - 1));
    if (length > max_message() || padded(length) > to_end || tail + padded(length) > head) {
      throw Error("ring (length " + std::to_string(length) +
                  ") must contain complete messages; use the same version in both processes");
    }
    front_end_ = tail + padded(length);
    return {bytes_ + (tail & (capacity_ - 1)) + kHeader, length};
  }
  // Consumes the message that front() returned. The next front() returns the next message.
  void take() { tail_ = front_end_; }
  // Consumer: frees the space of all consumed messages.
  void release() { shared_->tail.store(tail_, std::memory_order_release); }
  void pop() {
    take();
    release();
  }
  uint64_t taken_tail() const { return tail_; }
  // Resumes for an earlier consumer that consumed messages up to `tail`.
  void resume_consumer(uint64_t tail) {
    tail_ = tail;
    release();
  }
  // Consumer: returns whether all published messages have been consumed.
  bool is_empty() const { return shared_->head.load(std::memory_order_acquire) == tail_; }

 private:
  // Each counter has its own cache line, to avoid false sharing.
  struct Shared {
    alignas(64) std::atomic<uint64_t> head;  // total bytes published
    alignas(64) std::atomic<uint64_t> tail;  // total bytes released
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  static constexpr uint32_t kHeader = 8;  // u32 length, padded to the alignment
  static constexpr uint32_t kSkip = UINT32_MAX;
  static constexpr uint64_t padded(uint32_t length) {
    return (uint64_t{length} + kHeader + 7) / 8 * 8;
  }
  void set_length(uint64_t at, uint32_t length) {
    std::memcpy(bytes_ + (at & (capacity_ - 1)), &length, sizeof length);
  }
  uint32_t length_at(uint64_t at) const {
    uint32_t length;
    std::memcpy(&length, bytes_ + (at & (capacity_ - 1)), sizeof length);
    return length;
  }

  Shared* const shared_;
  std::byte* const bytes_;
  const uint64_t capacity_;
  uint64_t head_;           // used by the producer: includes staged messages
  uint64_t reserved_ = 0;   // used by the producer: position of the last reserve()
  uint64_t tail_;           // used by the consumer: includes consumed messages
  uint64_t front_end_ = 0;  // used by the consumer: end of the front message
};

}  // namespace tengen::transport
