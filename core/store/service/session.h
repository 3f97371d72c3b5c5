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

#include "store/service/ports.h"
#include "store/service/protocol.h"
#include "store/service/wire.h"
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

// For one thread. Every call throws Error once the server has ended, was gone for longer than the
// patience, or has refused a request. Requests and replies stay in the shared memory while the
// server is gone: none is lost or comes twice.
class Session {
 public:
  explicit Session(const SessionAddress& address);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  uint32_t max_request() const { return requests_.max_message(); }
  // Sends a message, and `tail` behind it. Blocks while the server is behind; false where the
  // deadline passes.
  template <class Message>
  bool send(const Message& message, Deadline deadline, std::span<const std::byte> tail = {}) {
    if (!post(message, deadline, tail)) return false;
    ring();
    return true;
  }
  // The same for a message whose effect nobody waits for yet: a server that naps is not woken, and
  // sees the message when it looks.
  template <class Message>
  bool send_soon(const Message& message, Deadline deadline, std::span<const std::byte> tail = {}) {
    if (!post(message, deadline, tail)) return false;
    wake_if(kSleeps, &header_->server_sleeps, descriptor_);
    return true;
  }
  // The same, but wakes nobody: a server that sleeps sees the message after the next ring() or
  // send().
  template <class Message>
  bool post(const Message& message, Deadline deadline, std::span<const std::byte> tail = {}) {
    const uint32_t num_bytes = static_cast<uint32_t>(sizeof message + tail.size());
    std::byte* to = reserve(num_bytes, deadline);
    if (to == nullptr) return false;
    to = put(to, message);
    if (!tail.empty()) std::memcpy(to, tail.data(), tail.size());
    requests_.commit(num_bytes);
    ++num_sent_;
    return true;
  }
  void ring() { wake(&header_->server_sleeps, descriptor_); }

  // The oldest reply, valid until pop_reply(). Blocks until there is one; empty where the deadline
  // passes.
  std::span<const std::byte> wait_for_reply(Deadline deadline);
  // The same without waiting: empty where there is none.
  std::span<const std::byte> peek_reply() { return replies_.front(); }
  void pop_reply() { replies_.pop(); }
  bool has_reply() const { return !replies_.is_empty(); }
  // Blocks until every request has taken effect; false where the deadline passes.
  bool wait_for_all(Deadline deadline);
  // What the server says that it waits for; empty where it does not wait.
  std::string waits() const;

 private:
  std::byte* reserve(uint32_t num_bytes, Deadline deadline);
  template <class Ready>
  bool wait_until(Deadline deadline, Ready&& ready);
  bool sleep(Deadline deadline);
  void look_for_server(Deadline deadline);
  void check_error();

  int descriptor_;
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

// `num_ahead` chunks are requested before they are needed.
std::unique_ptr<WriterPort> remote_writer(const SessionAddress& address, uint64_t next_sequence,
                                          uint32_t num_ahead);
// `num_ahead` batches are requested before they are needed; 0: each by next().
std::unique_ptr<SamplerPort> remote_sampler(const SessionAddress& address, uint32_t num_ahead);

}  // namespace tengen::store
