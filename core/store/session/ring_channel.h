#pragma once
// A client's side of a session with the server of its host. Requests and replies go through shared
// memory, without a system call while both sides are busy.

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

// The address of a session, which a client receives from the server that opened it.
struct SessionAddress {
  int descriptor = -1;  // the connected socket; the session takes ownership
  std::string memory_path;
  SessionLayout layout;
  // Called after the server was killed: returns a socket to the server that resumes the session, or
  // -1 if there is none yet. Throws Error if the session has ended.
  std::function<int()> reconnect = [] { return -1; };
  // How long to wait for another server before the session ends.
  std::chrono::milliseconds patience{0};
};

// A channel over shared-memory rings. Requests and replies stay in shared memory while no server
// runs, so none is lost or duplicated. If no server resumes the session within `patience`, the
// session ends.
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
  std::optional<std::chrono::steady_clock::time_point> gone_since_;  // none while there is a server
};

}  // namespace tengen::store
