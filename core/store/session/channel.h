#pragma once
// How a client's writers and samplers reach a store: messages one way and replies the other,
// whatever carries them.

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
// A deadline that has passed: what cannot be done at once is not done.
constexpr Deadline kAtOnce{};

// The store has ended or cannot be reached; this client's writers and samplers there are over.
class GoneError : public Error {
 public:
  explicit GoneError(const std::string& store)
      : Error("store (" + store + ") has ended, or has closed this client; connect again") {}
};

// The store has refused a request of this client, and so has ended the session; a new session is
// served.
class RefusedError : public Error {
 public:
  using Error::Error;
};

// How soon the store must see a message.
enum class Urgency {
  kNow,    // somebody waits for what the message does
  kSoon,   // nobody waits for it: a store that looks by itself within a moment is not woken
  kLater,  // after the next ring(), or message that is sent kNow
};

// A client's side of one session with a store, for one thread. There are three: to a store in this
// process, in another process of this host, and on another host. Messages are those of messages.h;
// they take effect in order, some time after send(). Calls that send or wait throw Error once the
// store has ended or has refused a message. All but max_message() throw Error in a process that was
// forked from the one that made the channel: what they would move is the parent's. Ends the session
// when destroyed; a forked process only closes its descriptor.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // The longest message.
  virtual uint32_t max_message() const = 0;
  // Sends one message, which lies in `parts`, whose entries it changes; a channel to another host
  // takes several messages at once, with the steps that belong to them. Blocks while the store is
  // behind; false where the deadline passes, and then the message was not sent.
  virtual bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) = 0;
  // The same for a message of fixed size.
  template <class Message>
  bool send_one(const Message& message, Deadline deadline, Urgency urgency = Urgency::kNow) {
    iovec part{const_cast<Message*>(&message), sizeof message};
    return send({&part, 1}, deadline, urgency);
  }
  // Has the store see what was sent kLater.
  virtual void ring() = 0;
  // The oldest reply, valid until pop_reply(). Blocks until there is one; empty where the deadline
  // passes.
  virtual std::span<const std::byte> wait_for_reply(Deadline deadline) = 0;
  // The same without waiting: empty where there is none.
  virtual std::span<const std::byte> peek_reply() = 0;
  // Drops the oldest reply. Returns the gathered steps that came with it; null where steps lie in
  // memory that the store and this process share.
  virtual std::shared_ptr<std::byte> pop_reply() = 0;
  // Blocks until every message has taken effect; false where the deadline passes.
  virtual bool wait_for_all(Deadline deadline) = 0;
  // What the store's side waits for, for people; empty where it does not wait.
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
