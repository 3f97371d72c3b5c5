// Receives the steps of a client on another host directly into their slots. The client's items and
// releases go to the engine unchanged.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/net/net_session.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

using engine::Engine;

class StepReceiver final : public NetSession {
 public:
  StepReceiver(NetParts parts, uint32_t writer)
      : NetSession(std::move(parts.connection), std::move(parts.name)),
        session_(std::move(parts.session)),
        schema_(std::move(parts.schema)),
        slabs_(std::move(parts.slabs)),
        writer_(writer) {}

 private:
  void serve() override {
    constexpr uint64_t max_bytes = sizeof(InsertMessage) + kMaxItems * sizeof(double);
    while (read_message(socket_, max_bytes, &message_) && take()) {
    }
  }
  void end() noexcept override { session_.reset(); }

  // Applies one message. Returns false if the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSteps:
        return take_steps(read<Steps>(message_).num_steps);
      case Request::kInsert:
        check_appended(read<InsertMessage>(message_));
        return apply();
      case Request::kRelease:
        check_release(read<Release>(message_).first);
        return apply();
      case Request::kFlush:
        return flush(read<Flush>(message_).number);
      default:
        refuse(kind);
    }
  }

  bool take_steps(uint32_t num_steps) {
    const uint64_t offset = num_steps_ % schema_.steps_per_chunk();
    check(num_steps > 0 && num_steps <= schema_.steps_per_chunk() - offset, "steps", num_steps,
          "must lie in one chunk; the client is of another version");
    if (offset == 0 && !begin_chunk()) return false;
    std::byte* const chunk = slabs_.up_to(slot_).at(slot_);
    bool goes_on = true;
    schema_.for_each_run(chunk, offset, num_steps, [&](std::byte* to, uint64_t num_bytes) {
      goes_on = goes_on && socket_.read(to, num_bytes);
    });
    num_steps_ += num_steps;
    return goes_on;
  }

  // Appends an empty chunk. Blocks while memory is full. Returns false if the client has gone.
  bool begin_chunk() {
    const auto waits = [&] {
      return session_->store().read(
          [&](const Engine& engine) { return engine.grant_waits(writer_); });
    };
    return wait_for(waits, [&](Deadline deadline) {
      return session_->store().change_when(deadline, [&](Engine& engine) {
        const std::optional<uint32_t> slot = engine.grant(writer_);
        if (!slot) return engine.is_making_room(writer_) ? Progress::kSome : Progress::kNone;
        engine.append(writer_, *slot);
        slot_ = *slot;
        return Progress::kDone;
      });
    });
  }

  // Applies the message. Returns false if the client has gone.
  bool apply() {
    return wait_for([&] { return session_->waits(); },
                    [&](Deadline deadline) { return session_->apply(message_, deadline); });
  }
  // Throws Error if an item extends beyond the steps that the client has sent, because the rest of
  // the chunk still contains bytes of an earlier writer.
  void check_appended(const InsertMessage& message) const {
    const uint64_t count = std::max(message.count, 1u);
    const uint64_t behind_first = (count - 1) * message.stride + message.num_steps;
    if (message.first <= num_steps_ && behind_first <= num_steps_ - message.first) return;
    throw Error("steps (" + std::to_string(message.first) + " and " + std::to_string(behind_first) +
                " from there) must be appended; append them first");
  }

  // Throws Error if the client releases the chunk that is being filled. The engine cannot check
  // this, because it does not know how full the chunk is.
  void check_release(uint64_t first) const {
    check(first <= num_steps_, "step", first,
          "must be appended before steps are released up to it; append it first");
  }

  bool flush(uint64_t number) {
    if (!wait_for([&] { return session_->waits(); },
                  [&](Deadline deadline) { return session_->wait_for_all(deadline); })) {
      return false;
    }
    const Flushed reply{.number = number};
    iovec part = transport::part_of(&reply, sizeof reply);
    return socket_.send({&part, 1});
  }

  std::unique_ptr<LocalChannel> session_;  // null after the session has ended
  const engine::Schema schema_;
  SlabMap slabs_;
  const uint32_t writer_;
  uint32_t slot_ = 0;       // slot of the chunk that is being filled
  uint64_t num_steps_ = 0;  // number of steps received from the client
  std::vector<std::byte> message_;
};

}  // namespace

std::unique_ptr<NetSession> step_receiver(NetParts parts, uint32_t writer) {
  return std::make_unique<StepReceiver>(std::move(parts), writer);
}

}  // namespace tengen::store
