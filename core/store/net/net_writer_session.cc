// A writer on another host: its steps are received into the slots where they stay.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/clients/writer.h"
#include "store/net/net_session.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

class NetWriterSession final : public NetSession {
 public:
  explicit NetWriterSession(NetParts parts)
      : NetSession(std::move(parts.connection), std::move(parts.name)) {
    // Whoever writes the client's messages releases its steps.
    writer_.emplace(WriterSession{std::move(parts.channel)}, std::move(parts.schema),
                    std::move(parts.slabs), /*max_item_steps=*/0);
  }

 private:
  void serve() override {
    constexpr uint64_t max_bytes = sizeof(InsertMessage) + kMaxItems * sizeof(double);
    while (read_message(socket_, max_bytes, &message_) && take()) {
    }
  }
  void end() noexcept override { writer_.reset(); }

  // False where the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSteps:
        return take_steps(read<Steps>(message_).num_steps);
      case Request::kInsert:
        check_appended(read<InsertMessage>(message_));
        return pass_on(writer_->channel(), message_);
      case Request::kRelease:
        check_release(read<Release>(message_).first);
        return pass_on(writer_->channel(), message_);
      case Request::kFlush:
        return flush(read<Flush>(message_).number);
      default:
        refuse(kind);
    }
  }

  bool take_steps(uint32_t num_steps) {
    const engine::Schema& schema = writer_->schema();
    const uint64_t offset = writer_->num_steps() % schema.steps_per_chunk();
    check(num_steps > 0 && num_steps <= schema.steps_per_chunk() - offset, "steps", num_steps,
          "must lie in one chunk; the client is of another version");
    std::byte* chunk = nullptr;
    bool goes_on = wait_for(*writer_, [&](Deadline deadline) {
      chunk = writer_->chunk_of_next(deadline);
      return chunk != nullptr;
    });
    if (!goes_on) return false;
    schema.for_each_run(chunk, offset, num_steps, [&](std::byte* to, uint64_t num_bytes) {
      goes_on = goes_on && socket_.read(to, num_bytes);
    });
    writer_->add(num_steps);
    return goes_on;
  }

  // Behind the writer's steps the chunk still has bytes of an earlier writer.
  void check_appended(const InsertMessage& message) const {
    const uint64_t count = std::max(message.count, 1u);
    const uint64_t behind_first = (count - 1) * message.stride + message.num_steps;
    const uint64_t num_steps = writer_->num_steps();
    if (message.first <= num_steps && behind_first <= num_steps - message.first) return;
    throw Error("steps (" + std::to_string(message.first) + " and " + std::to_string(behind_first) +
                " from there) must be appended; append them first");
  }

  // The chunk that is being filled must stay the writer's. The store does not know how far it is.
  void check_release(uint64_t first) const {
    check(first <= writer_->num_steps(), "step", first,
          "must be appended before steps are released up to it; append it first");
  }

  bool flush(uint64_t number) {
    if (!wait_for(*writer_, [&](Deadline deadline) { return writer_->flush(deadline); })) {
      return false;
    }
    const Flushed reply{.number = number};
    iovec part = transport::part_of(&reply, sizeof reply);
    return socket_.send({&part, 1});
  }

  std::optional<Writer> writer_;  // none once the session is over
  std::vector<std::byte> message_;
};

}  // namespace

std::unique_ptr<NetSession> net_writer_session(NetParts parts) {
  return std::make_unique<NetWriterSession>(std::move(parts));
}

}  // namespace tengen::store
