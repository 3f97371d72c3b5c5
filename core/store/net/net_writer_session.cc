// A writer on another host: its steps are received into the slots where they stay.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/net/net_session.h"
#include "store/session/encoding.h"
#include "store/session/stream_messages.h"

namespace tengen::store {
namespace {

class NetWriterSession final : public NetSession {
 public:
  NetWriterSession(int descriptor, std::string name, std::unique_ptr<Channel> channel,
                   const engine::Schema& schema, SlabMap slabs)
      : NetSession(descriptor, std::move(name)),
        channel_(std::move(channel)),
        schema_(schema),
        slabs_(std::move(slabs)) {}

  void run() override {
    try {
      while (read_request(socket_, kMaxItems, &message_) && take()) {
      }
      channel_.reset();
    } catch (const Error& error) {
      channel_.reset();
      send_error(error.what());
      linger();
    }
  }

 private:
  // False where the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSteps:
        return take_steps(read<Steps>(message_).num_steps);
      case Request::kInsert:
        check_appended(read<InsertMessage>(message_));
        return pass_on(*channel_, message_);
      case Request::kRelease:
        return pass_on(*channel_, message_);
      case Request::kFlush:
        return flush(read<Flush>(message_).number);
      default:
        refuse(kind);
    }
  }

  bool take_steps(uint32_t num_steps) {
    const uint32_t length = schema_.steps_per_chunk();
    const uint32_t offset = static_cast<uint32_t>(num_steps_ % length);
    if (num_steps > length - offset) {
      throw Error("steps (" + std::to_string(num_steps) +
                  ") must lie in one chunk; the client is of another version");
    }
    if (offset == 0 && !begin_chunk()) return false;
    std::byte* chunk = slabs_.up_to(slot_).at(slot_);
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      const uint64_t bytes = schema_.columns()[c].num_bytes;
      std::byte* to = chunk + schema_.offset(c) + offset * bytes;
      if (!socket_.read(to, num_steps * bytes)) return false;
    }
    if (schema_.num_context() > 0 &&
        !socket_.read(chunk + schema_.ages_offset() + offset, num_steps)) {
      return false;
    }
    num_steps_ += num_steps;
    return true;
  }

  // Asks for the slot of the next chunk, and begins it.
  bool begin_chunk() {
    const TakeSlots one{Request::kTakeSlots, 1};
    std::span<const std::byte> reply;
    if (!pass_on(*channel_, std::as_bytes(std::span(&one, 1))) ||
        !wait_for(*channel_, [&](Deadline deadline) {
          reply = channel_->wait_for_reply(deadline);
          return reply.data() != nullptr;
        })) {
      return false;
    }
    slot_ = read<uint32_t>(reply.subspan(sizeof(Slots)));
    channel_->pop_reply();
    const Append begin{Request::kAppend, slot_};
    return pass_on(*channel_, std::as_bytes(std::span(&begin, 1)));
  }

  // Behind the writer's steps the chunk still has bytes of an earlier writer.
  void check_appended(const InsertMessage& message) const {
    const uint64_t count = std::max(message.count, 1u);
    const uint64_t behind_first = (count - 1) * message.stride + message.num_steps;
    if (message.first <= num_steps_ && behind_first <= num_steps_ - message.first) return;
    throw Error("steps (" + std::to_string(message.first) + " and " + std::to_string(behind_first) +
                " from there) must be appended; append them first");
  }

  bool flush(uint64_t number) {
    if (!wait_for(*channel_, [&](Deadline deadline) { return channel_->wait_for_all(deadline); })) {
      return false;
    }
    const Flushed reply{Reply::kFlushed, 0, number};
    iovec part = transport::part_of(&reply, sizeof reply);
    return socket_.send({&part, 1});
  }

  std::unique_ptr<Channel> channel_;
  const engine::Schema schema_;
  SlabMap slabs_;
  uint64_t num_steps_ = 0;
  uint32_t slot_ = 0;  // of the chunk that is being filled
  std::vector<std::byte> message_;
};

}  // namespace

std::unique_ptr<NetSession> net_writer_session(int descriptor, std::string name,
                                               std::unique_ptr<Channel> channel,
                                               const engine::Schema& schema, SlabMap slabs) {
  return std::make_unique<NetWriterSession>(descriptor, std::move(name), std::move(channel), schema,
                                            std::move(slabs));
}

}  // namespace tengen::store
