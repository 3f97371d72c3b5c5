#pragma once
// Sessions with a store of this process: the caller's thread applies its messages itself.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/service/store.h"
#include "store/session/channel.h"
#include "store/session/messages.h"
#include "store/session/served_session.h"

namespace tengen::store {

// An Error is thrown by the call whose message was refused, and the session goes on.
class LocalChannel final : public Channel, private Outbox {
 public:
  // Takes over the engine's session.
  LocalChannel(Store* store, engine::SessionId id, std::unique_ptr<ServedSession> served)
      : store_(store), id_(id), served_(std::move(served)) {}
  ~LocalChannel() override;

  uint32_t max_message() const override { return UINT32_MAX; }
  bool send(std::span<iovec> parts, Deadline deadline, Urgency urgency) override;
  void ring() override { check_process(); }
  std::span<const std::byte> wait_for_reply(Deadline deadline) override;
  std::span<const std::byte> peek_reply() override;
  std::shared_ptr<std::byte> pop_reply() override {
    check_process();
    num_reply_bytes_ = 0;
    return nullptr;
  }
  bool wait_for_all(Deadline deadline) override;
  std::string waits() override;

 private:
  Progress apply(engine::Engine& engine);
  std::byte* reserve(uint32_t num_bytes) override;
  void stage(uint32_t num_bytes) override { num_reply_bytes_ = num_bytes; }

  Store* const store_;
  const engine::SessionId id_;
  const std::unique_ptr<ServedSession> served_;
  std::vector<std::byte> message_;
  std::optional<Append> appended_;  // takes effect with the next message, under the same lock
  uint64_t inserts_end_ = 0;        // the checkpoint that has what was inserted; 0: none has to
  std::vector<std::byte> reply_;
  uint32_t num_reply_bytes_ = 0;  // 0: there is no reply
};

}  // namespace tengen::store
