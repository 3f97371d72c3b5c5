#pragma once
// A queue of messages from one process to another in shared memory: no lock, no system call.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/error.h"

namespace tengen::transport {

// One producer and one consumer, each on a thread of its own, that may die at any instant: a
// message is there whole or not at all. Messages lie one after another, none across the end, so
// that both sides work in place. Waiting and waking are the caller's.
//
// The other side sees staged messages after publish(), and taken ones as taken after release(). So
// a side can first note elsewhere what it is about to do, and a process that takes its place can go
// on by resume.
class Ring {
 public:
  // Bytes of memory that a ring of `capacity` bytes of messages needs.
  static constexpr uint64_t num_bytes(uint32_t capacity) { return sizeof(Shared) + capacity; }

  // `memory`, aligned to 64 bytes, is zero or holds a ring of the same capacity, a power of two of
  // at least 64. Both sides make a Ring over the same memory.
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

  // The longest message that fits.
  uint32_t max_message() const { return capacity_ / 2 - kHeader; }

  // Producer: room for a message of at most `num_bytes` <= max_message(), aligned to 8, or null
  // while the consumer is behind.
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
  // Says that the first `num_bytes` of the room reserved last are a message.
  void stage(uint32_t num_bytes) {
    set_length(reserved_, num_bytes);
    head_ = reserved_ + padded(num_bytes);
  }
  // Sends the staged messages.
  void publish() { shared_->head.store(head_, std::memory_order_release); }
  void commit(uint32_t num_bytes) {
    stage(num_bytes);
    publish();
  }
  uint64_t staged_head() const { return head_; }
  // Goes on after a producer that staged messages up to `head`, and sends them.
  void resume_producer(uint64_t head) {
    head_ = head;
    publish();
  }

  // Consumer: the oldest message, or one of no bytes at address null where there is none. It stays
  // until it is released. Throws Error where the producer wrote what is no message.
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
                  ") must hold whole messages; the other process is of another version");
    }
    front_end_ = tail + padded(length);
    return {bytes_ + (tail & (capacity_ - 1)) + kHeader, length};
  }
  // Takes the message that front() returned; the next front() returns the one after it.
  void take() { tail_ = front_end_; }
  // Ends the life of all messages that were taken.
  void release() { shared_->tail.store(tail_, std::memory_order_release); }
  void pop() {
    take();
    release();
  }
  uint64_t taken_tail() const { return tail_; }
  // Goes on after a consumer that took messages up to `tail`.
  void resume_consumer(uint64_t tail) {
    tail_ = tail;
    release();
  }
  // Consumer: whether all messages were taken.
  bool is_empty() const { return shared_->head.load(std::memory_order_acquire) == tail_; }

 private:
  // Each counter on a line of its own, so that the sides do not wait for each other's.
  struct Shared {
    alignas(64) std::atomic<uint64_t> head;  // bytes ever sent
    alignas(64) std::atomic<uint64_t> tail;  // bytes ever taken
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  static constexpr uint32_t kHeader = 8;  // u32 length, and padding to the alignment
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
  uint64_t head_;           // the producer's, with what is staged
  uint64_t reserved_ = 0;   // the producer's
  uint64_t tail_;           // the consumer's, with what is taken
  uint64_t front_end_ = 0;  // the consumer's
};

}  // namespace tengen::transport
