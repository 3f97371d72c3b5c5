#pragma once
// A client's side of a session with the server of its host: requests go into shared memory, and
// replies come from it, without a system call while both sides are busy.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "store/session/channel.h"
#include "store/session/ring_memory.h"
#include "transport/connection.h"
#include "transport/shared_memory.h"

namespace tengen::store {

// What the server tells a client whose session it opened.
struct SessionAddress {
  int descriptor = -1;  // of the connected socket, which the session takes over
  std::string memory_path;
  SessionLayout layout;
  // Called when the server was killed: returns a socket to the server that goes on with the
  // session, or -1 where there is none yet. Throws Error where the session is over.
  std::function<int()> reconnect = [] { return -1; };
  // How long to wait for another server.
  std::chrono::milliseconds patience{0};
};

// Requests and replies stay in the shared memory while the server is gone: none is lost or comes
// twice. A server that is gone for longer than the patience has ended.
class RingChannel final : public Channel {
 public:
  explicit RingChannel(const SessionAddress& address);
  ~RingChannel() override = default;

  uint32_t max_message() const override { return requests_.max_message(); }
  bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) override;
  void ring() override;
  std::span<const std::byte> wait_for_reply(Deadline deadline) override;
  std::span<const std::byte> peek_reply() override {
    check_process();
    return replies_.front();
  }
  std::shared_ptr<std::byte> pop_reply() override {
    check_process();
    replies_.pop();
    return nullptr;
  }
  bool wait_for_all(Deadline deadline) override;
  std::string waits() override {
    check_process();
    return read_reason(*header_);
  }

 private:
  std::byte* reserve(uint32_t num_bytes, Deadline deadline);
  template <class Ready>
  bool wait_until(Deadline deadline, Ready&& ready);
  bool sleep(Deadline deadline);
  void look_for_server(Deadline deadline);
  void check_error();

  transport::Connection connection_;
  const std::function<int()> reconnect_;
  const std::chrono::milliseconds patience_;
  const transport::SharedMemory memory_;
  SessionHeader* const header_;
  transport::Ring requests_;
  transport::Ring replies_;
  uint64_t num_sent_ = 0;
  std::string error_;
  std::optional<std::chrono::steady_clock::time_point> gone_since_;  // none: there is a server
};

}  // namespace tengen::store
