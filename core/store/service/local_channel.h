#pragma once
// The channel of a session whose messages are applied by a thread of the store's process, for
// clients in this process or, through a gateway, on other hosts.

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

// A writer's or a sampler's session with a store: the caller's thread applies its messages. The
// session ends with this object. One thread may send messages while another waits for replies. A
// call that throws Error for an invalid message changes nothing, and the session continues.
class LocalChannel final : public Channel, private Outbox {
 public:
  // Takes ownership of the engine's session `id`. `serve` creates its ServedSession. Ends the
  // session if memory is exhausted.
  template <class Serve>
  static std::unique_ptr<LocalChannel> open(Store* store, engine::SessionId id, Serve&& serve) {
    try {
      return std::make_unique<LocalChannel>(store, id, serve());
    } catch (...) {
      store->end_session(id);
      throw;
    }
  }
  LocalChannel(Store* store, engine::SessionId id, std::unique_ptr<ServedSession> served)
      : store_(store), id_(id), served_(std::move(served)) {}
  ~LocalChannel() override {
    if (!is_forked()) store_->end_session(id_);  // otherwise the session belongs to the parent
  }

  Store& store() const { return *store_; }
  uint32_t max_message() const override { return UINT32_MAX; }
  bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) override;
  // As send(), for a message in one piece. If it returns false, call it again with the same
  // message.
  bool apply(std::span<const std::byte> message, Deadline deadline);
  void ring() override { check_process(); }
  std::span<const std::byte> wait_for_reply(Deadline deadline) override;
  std::span<const std::byte> peek_reply() override {
    check_process();
    if (num_reply_bytes_ == 0) return {};
    return {reply_.data(), num_reply_bytes_};
  }
  std::shared_ptr<std::byte> pop_reply() override {
    check_process();
    num_reply_bytes_ = 0;
    return nullptr;
  }
  // Blocks until the inserted items survive a host crash, if the store's durability is kSync. For
  // the thread that sends messages.
  bool wait_for_all(Deadline deadline) override;
  std::string waits() override {
    check_process();
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
  std::vector<std::byte> message_;
  std::vector<std::byte> reply_;
  uint32_t num_reply_bytes_ = 0;  // 0 if there is no reply
};

}  // namespace tengen::store
