#pragma once
// The connection between a client's writer or sampler and a store, over any carrier. The client
// sends messages, and the store sends replies.

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "transport/process.h"

namespace tengen::store {

using Deadline = std::chrono::steady_clock::time_point;
// A deadline in the past: the call tries once and does not wait.
constexpr Deadline kAtOnce{};

// Thrown if the store has ended or cannot be reached. Its clients in this process are unusable.
class GoneError : public Error {
 public:
  explicit GoneError(const std::string& store)
      : Error("store (" + store + ") has ended, or has closed this client; connect again") {}
};

// Thrown if the store has refused a request of this client, and so has ended the session. The
// client may open a new session.
class RefusedError : public Error {
 public:
  using Error::Error;
};

// When the store must read a message.
enum class Urgency {
  kNow,    // a caller waits for the effect of the message
  kSoon,   // no caller waits, so a store that polls within a millisecond is not woken
  kLater,  // the store reads it after the next ring() or the next message with kNow
};

// A client's side of one session with a store, for one thread. There is one implementation each for
// a store in this process, in another process of this host, and on another host. See messages.h for
// the messages; they take effect in order, some time after send(). Calls that send or wait throw
// Error if the store has ended or has refused a message. All calls except max_message() throw Error
// in a fork of the process that created the channel, because the session belongs to the parent. The
// destructor ends the session; in a forked process it only closes the descriptor.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // The maximum length of a message in bytes.
  virtual uint32_t max_message() const = 0;
  // Sends the message that consists of `parts`, and modifies the entries of `parts`. A channel to
  // another host accepts several messages in one call, with the steps that belong to them. Blocks
  // while the store is busy. Returns false if the deadline expires; the message was then not sent.
  virtual bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) = 0;
  // As send(), for a message of fixed size.
  template <class Message>
  bool send_one(const Message& message, Deadline deadline, Urgency urgency = Urgency::kNow) {
    iovec part{const_cast<Message*>(&message), sizeof message};
    return send({&part, 1}, deadline, urgency);
  }
  // Makes the store read the messages that were sent with kLater.
  virtual void ring() = 0;
  // Returns the oldest reply, valid until pop_reply(). Blocks until there is one; returns an empty
  // span if the deadline expires.
  virtual std::span<const std::byte> wait_for_reply(Deadline deadline) = 0;
  // As wait_for_reply(), but does not block: returns an empty span if there is no reply.
  virtual std::span<const std::byte> peek_reply() = 0;
  // Drops the oldest reply. Returns the gathered steps that came with it, or null if the store and
  // this process share the memory of the steps.
  virtual std::shared_ptr<std::byte> pop_reply() = 0;
  // Blocks until every message has taken effect. Returns false if the deadline expires.
  virtual bool wait_for_all(Deadline deadline) = 0;
  // Returns a human-readable reason why the store makes this session wait, or an empty string.
  virtual std::string waits() = 0;

 protected:
  bool is_forked() const { return num_forks_ != transport::num_forks(); }
  void check_process() const {
    if (is_forked()) {
      throw Error(
          "client (of a store) must be used in the process that opened it; connect again in "
          "the forked one");
    }
  }

 private:
  const uint32_t num_forks_ = transport::num_forks();
};

}  // namespace tengen::store
