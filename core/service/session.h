#pragma once
// A client's side of a session with the server of its host: requests go into shared memory, and
// replies come from it, without a system call while both sides are busy.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ipc/shared_memory.h"
#include "service/ports.h"
#include "service/protocol.h"
#include "service/wire.h"

namespace tengen::service {

// What the server tells a client that it took in.
struct SessionAddress {
  int descriptor = -1;  // of the connected socket, the session's from here on
  std::string memory_path;
  SessionLayout layout;
};

// For one thread. Every call throws Error once the server is gone, or has refused a request.
class Session {
 public:
  explicit Session(const SessionAddress& address);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  uint32_t max_request() const { return requests_.max_message(); }
  // A message and what lies behind it. Blocks while the server is behind; false where the
  // deadline passes.
  template <class Message>
  bool send(const Message& message, Deadline deadline, std::span<const std::byte> tail = {}) {
    const uint32_t num_bytes = static_cast<uint32_t>(sizeof message + tail.size());
    std::byte* to = reserve(num_bytes, deadline);
    if (to == nullptr) return false;
    to = put(to, message);
    if (!tail.empty()) std::memcpy(to, tail.data(), tail.size());
    commit(num_bytes);
    return true;
  }

  // The oldest reply, until pop_reply(). Blocks; empty where the deadline passes.
  std::span<const std::byte> wait_for_reply(Deadline deadline);
  void pop_reply() { replies_.pop(); }
  bool has_reply() const { return !replies_.is_empty(); }
  // Blocks until every request has taken effect; false where the deadline passes.
  bool wait_for_all(Deadline deadline);
  // What the server says that it waits for; empty where it does not.
  std::string waits() const;

 private:
  std::byte* reserve(uint32_t num_bytes, Deadline deadline);
  void commit(uint32_t num_bytes);
  template <class Ready>
  bool wait_until(Deadline deadline, Ready&& ready);
  bool sleep(Deadline deadline);
  void check_error();

  const int descriptor_;
  const ipc::SharedMemory memory_;
  SessionHeader* const header_;
  ipc::Ring requests_;
  ipc::Ring replies_;
  uint64_t num_sent_ = 0;
  std::string error_;
  bool is_gone_ = false;
};

// `num_ahead` chunks are asked for before they are needed.
std::unique_ptr<WriterPort> remote_writer(const SessionAddress& address, uint64_t next_sequence,
                                          uint32_t num_ahead);
// `num_ahead` batches are drawn before they are needed, 0: each when next() asks for it.
std::unique_ptr<SamplerPort> remote_sampler(const SessionAddress& address, uint32_t num_ahead);

}  // namespace tengen::service
