#pragma once
// A client's side of a session with a store on another host, over a stream to the store's gateway.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/session/arena.h"
#include "store/session/channel.h"
#include "transport/stream_socket.h"

namespace tengen::store {

struct StreamAddress {
  int descriptor = -1;  // the connected stream; the channel takes ownership
  std::string name;     // human-readable name of the store
};

// A channel over a stream. A thread receives each batch directly into the caller's buffer.
class StreamChannel final : public Channel {
 public:
  // A batch has `num_samples` samples and `batch_bytes` bytes of steps; both are 0 for a writer.
  explicit StreamChannel(const StreamAddress& address, uint32_t num_samples = 0,
                         uint64_t batch_bytes = 0);
  ~StreamChannel() override;

  uint32_t max_message() const override { return UINT32_MAX; }
  bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) override;
  void ring() override { send({}, Deadline::max(), Urgency::kNow); }
  std::span<const std::byte> wait_for_reply(Deadline deadline) override;
  std::span<const std::byte> peek_reply() override;
  std::shared_ptr<std::byte> pop_reply() override;
  bool wait_for_all(Deadline deadline) override;
  std::string waits() override;

 private:
  struct Received {
    std::vector<std::byte> message;
    std::shared_ptr<std::byte> steps;
  };

  bool wait_for_room(Deadline deadline) const;
  void receive() noexcept;
  bool receive_one();
  [[noreturn]] void throw_end();

  transport::StreamSocket socket_;
  const std::string name_;
  const uint32_t num_samples_;
  const uint64_t batch_bytes_;
  Arena arena_;
  // Only for the caller's thread.
  std::vector<iovec> parts_;     // parts of the message that is being sent
  std::vector<std::byte> left_;  // bytes of messages that are not sent yet
  uint64_t num_sent_ = 0;        // number of messages sent
  uint64_t num_flushes_ = 0;     // number of flushes requested
  uint64_t flushed_at_ = 0;      // number of messages that the last flush covers
  // Shared by both threads; guarded by the mutex.
  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::deque<Received> replies_;
  uint64_t num_flushed_ = 0;  // flushes that were answered
  std::string waits_;
  std::string error_;                  // the error that ended the session
  std::atomic<bool> is_over_ = false;  // no more messages will arrive
  std::thread receiver_;
};

}  // namespace tengen::store
