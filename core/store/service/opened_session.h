#pragma once
// Sessions whose messages are applied by a thread of the store's process, for clients in this
// process or on other hosts.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/service/store.h"
#include "store/session/channel.h"
#include "store/session/messages.h"
#include "store/session/served_session.h"

namespace tengen::store {

// A writer's or a sampler's session with a store. The session ends with this object. One thread may
// apply messages while another waits for replies. apply() throws Error for an invalid message and
// changes nothing, and the session continues.
class OpenedSession final : private Outbox {
 public:
  // Takes ownership of the engine's session `id`. `serve` creates its ServedSession. Ends the
  // session if memory is exhausted.
  template <class Serve>
  static std::unique_ptr<OpenedSession> open(Store* store, engine::SessionId id, Serve&& serve) {
    try {
      return std::make_unique<OpenedSession>(store, id, serve());
    } catch (...) {
      store->end_session(id);
      throw;
    }
  }
  OpenedSession(Store* store, engine::SessionId id, std::unique_ptr<ServedSession> served)
      : store_(store), id_(id), served_(std::move(served)) {}
  OpenedSession(const OpenedSession&) = delete;
  OpenedSession& operator=(const OpenedSession&) = delete;
  ~OpenedSession() override { store_->end_session(id_); }

  Store& store() const { return *store_; }
  // Applies a message. Blocks while the store is busy. Returns false if the deadline expires; then
  // call apply() again with the same message.
  bool apply(std::span<const std::byte> message, Deadline deadline);
  // Returns the oldest reply, valid until pop_reply(). Blocks until there is one; returns an empty
  // span if the deadline expires.
  std::span<const std::byte> wait_for_reply(Deadline deadline);
  // As wait_for_reply(), but does not block: returns an empty span if there is no reply.
  std::span<const std::byte> reply() const {
    if (num_reply_bytes_ == 0) return {};
    return {reply_.data(), num_reply_bytes_};
  }
  void pop_reply() { num_reply_bytes_ = 0; }
  // Blocks until the inserted items survive a host crash, if the store's durability is kSync.
  // Returns false if the deadline expires. For the thread that applies messages.
  bool flush(Deadline deadline);
  // Returns a human-readable reason why the session waits, or an empty string if it does not.
  std::string waits() const {
    return store_->read([&](const engine::Engine& engine) { return served_->waits(engine); });
  }

 private:
  std::byte* reserve(uint32_t num_bytes) override;
  void stage(uint32_t num_bytes) override { num_reply_bytes_ = num_bytes; }

  Store* const store_;
  const engine::SessionId id_;
  const std::unique_ptr<ServedSession> served_;  // guarded by the store's lock
  std::optional<Append> appended_;  // applied with the next message, under the same lock
  uint64_t inserts_end_ = 0;        // number of the checkpoint with all inserts; 0: none needed
  std::vector<std::byte> reply_;
  uint32_t num_reply_bytes_ = 0;  // 0 if there is no reply
};

// The channel of a client in the store's own process: the caller's thread applies its messages.
class LocalChannel final : public Channel {
 public:
  explicit LocalChannel(std::unique_ptr<OpenedSession> session) : session_(std::move(session)) {}
  ~LocalChannel() override {
    if (is_forked()) (void)session_.release();  // the session belongs to the parent
  }

  uint32_t max_message() const override { return UINT32_MAX; }
  bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) override;
  void ring() override { check_process(); }
  std::span<const std::byte> wait_for_reply(Deadline deadline) override {
    return session().wait_for_reply(deadline);
  }
  std::span<const std::byte> peek_reply() override { return session().reply(); }
  std::shared_ptr<std::byte> pop_reply() override {
    session().pop_reply();
    return nullptr;
  }
  bool wait_for_all(Deadline deadline) override { return session().flush(deadline); }
  std::string waits() override { return session().waits(); }

 private:
  OpenedSession& session() {
    check_process();
    return *session_;
  }

  std::unique_ptr<OpenedSession> session_;
  std::vector<std::byte> message_;
};

}  // namespace tengen::store
