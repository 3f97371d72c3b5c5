// A writer on another host: its steps are received into the slots where they stay.

#include <utility>

#include "base/error.h"
#include "store/net/net_session.h"

namespace tengen::store {
namespace {

class NetWriterSession final : public NetSession {
 public:
  NetWriterSession(int descriptor, std::string name, std::unique_ptr<WriterPort> port,
                   const engine::Schema& schema, SlabMap slabs)
      : NetSession(descriptor, std::move(name)),
        port_(std::move(port)),
        schema_(schema),
        slabs_(std::move(slabs)) {}

  void run() override {
    try {
      Request kind;
      while (socket_.read(&kind, sizeof kind) && take(kind)) {
      }
      port_.reset();
    } catch (const Error& error) {
      port_.reset();
      send_error(error.what());
      linger();
    }
  }

 private:
  // False where the client has gone.
  bool take(Request kind) {
    switch (kind) {
      case Request::kSteps:
        return take_steps();
      case Request::kInsert:
        return take_insert();
      case Request::kRelease: {
        Release message;
        if (!socket_.read_rest(&message)) return false;
        port_->release_before(message.first);
        return true;
      }
      case Request::kFlush:
        return take_flush();
      default:
        throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
                    ") must be one of a writer's; the client is of another version");
    }
  }

  bool take_steps() {
    Steps message;
    if (!socket_.read_rest(&message)) return false;
    const uint32_t length = schema_.steps_per_chunk();
    const uint32_t offset = static_cast<uint32_t>(num_steps_ % length);
    if (message.num_steps > length - offset) {
      throw Error("steps (" + std::to_string(message.num_steps) +
                  ") must lie in one chunk; the client is of another version");
    }
    if (offset == 0 && !begin_chunk()) return false;
    std::byte* chunk = slabs_.up_to(slot_).at(slot_);
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      const uint64_t bytes = schema_.columns()[c].num_bytes;
      std::byte* to = chunk + schema_.offset(c) + offset * bytes;
      if (!socket_.read(to, message.num_steps * bytes)) return false;
    }
    if (schema_.num_context() > 0 &&
        !socket_.read(chunk + schema_.ages_offset() + offset, message.num_steps)) {
      return false;
    }
    num_steps_ += message.num_steps;
    return true;
  }

  bool begin_chunk() {
    std::optional<uint32_t> slot;
    if (!wait_for(
            [&](Deadline deadline) {
              slot = port_->begin_chunk(deadline);
              return slot.has_value();
            },
            [] { return "writer waits: memory is held by writers and batches on loan"; })) {
      return false;
    }
    slot_ = *slot;
    return true;
  }

  bool take_insert() {
    InsertMessage message;
    if (!socket_.read_rest(&message)) return false;
    const uint32_t count = message.count;
    if (count == 0 || count > kMaxItems ||
        (message.num_priorities != 1 && message.num_priorities != count)) {
      throw Error("insert (" + std::to_string(count) + " items, " +
                  std::to_string(message.num_priorities) +
                  " priorities) must have a priority for all or for each; send as many as items");
    }
    // Behind the writer's steps the chunk still has bytes of an earlier writer.
    const uint64_t behind_first = uint64_t{count - 1} * message.stride + message.num_steps;
    if (message.first > num_steps_ || behind_first > num_steps_ - message.first) {
      throw Error("steps (" + std::to_string(message.first) + " and " +
                  std::to_string(behind_first) +
                  " from there) must be appended; append them first");
    }
    priorities_.resize(message.num_priorities);
    if (!socket_.read(priorities_.data(), priorities_.size() * sizeof(double))) return false;
    const InsertRun run{message.table, message.version, message.sequence,  message.first,
                        count,         message.stride,  message.num_steps, priorities_};
    return wait_for([&](Deadline deadline) { return port_->insert(run, deadline); },
                    [&] { return port_->waits(); });
  }

  bool take_flush() {
    Flush message;
    if (!socket_.read_rest(&message)) return false;
    if (!wait_for([&](Deadline deadline) { return port_->flush(deadline); },
                  [&] { return port_->waits(); })) {
      return false;
    }
    const Flushed reply{Reply::kFlushed, 0, message.number};
    iovec part = transport::part_of(&reply, sizeof reply);
    return socket_.send({&part, 1});
  }

  std::unique_ptr<WriterPort> port_;
  const engine::Schema schema_;
  SlabMap slabs_;
  uint64_t num_steps_ = 0;
  uint32_t slot_ = 0;  // of the chunk that is being filled
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<NetSession> net_writer_session(int descriptor, std::string name,
                                               std::unique_ptr<WriterPort> port,
                                               const engine::Schema& schema, SlabMap slabs) {
  return std::make_unique<NetWriterSession>(descriptor, std::move(name), std::move(port), schema,
                                            std::move(slabs));
}

}  // namespace tengen::store
