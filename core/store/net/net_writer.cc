#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "store/net/net_client.h"
#include "store/net/net_protocol.h"
#include "store/service/arena.h"
#include "store/service/wire.h"
#include "transport/stream_socket.h"

namespace tengen::store {
namespace {

// Steps are collected in one chunk, and sent with the insert that names them, or when the next
// chunk begins.
class NetWriter final : public WriterPort {
 public:
  NetWriter(const NetAddress& address, uint64_t next_sequence, const engine::Schema& schema,
            std::shared_ptr<std::byte> chunk)
      : socket_(address.descriptor),
        name_(address.name),
        next_sequence_(next_sequence),
        schema_(schema),
        chunk_(std::move(chunk)) {}

  uint64_t next_sequence() const override { return next_sequence_; }

  std::optional<uint32_t> begin_chunk(Deadline deadline) override {
    const uint64_t end = num_chunks_ * schema_.steps_per_chunk();
    parts_.clear();
    if (add_steps(end) && !send(deadline)) return std::nullopt;
    num_sent_ = end;
    ++num_chunks_;
    return 0;
  }

  bool insert(const InsertRun& run, Deadline deadline) override {
    for (uint32_t done = 0; done < run.count;) {
      const uint32_t count = std::min(run.count - done, kMaxItems);
      const auto [message, priorities] = message_of(run, done, count);
      const uint64_t filled = num_chunks_ * schema_.steps_per_chunk();
      const uint64_t named = message.first + uint64_t{count - 1} * run.stride + run.num_steps;
      const uint64_t end = std::max(num_sent_, std::min(named, filled));
      parts_.clear();
      add_steps(end);
      parts_.push_back(transport::part_of(&message, sizeof message));
      parts_.push_back(transport::part_of(priorities.data(), priorities.size_bytes()));
      if (!send(deadline)) return false;
      num_sent_ = end;
      done += count;
    }
    return true;
  }

  void release_before(uint64_t first) override {
    const Release message{Request::kRelease, 0, first};
    parts_.assign({transport::part_of(&message, sizeof message)});
    // Where the stream is full the release is sent the next time.
    send(kAtOnce);
  }

  bool flush(Deadline deadline) override {
    if (num_flushes_ == 0 || flushed_at_ != num_messages_) {
      const Flush message{Request::kFlush, 0, num_flushes_ + 1};
      parts_.assign({transport::part_of(&message, sizeof message)});
      if (!send(deadline)) return false;
      ++num_flushes_;
      flushed_at_ = num_messages_;
    }
    while (num_flushed_ < num_flushes_) {
      if (!wait(deadline, !left_.empty())) return false;
    }
    return true;
  }

  std::string waits() override {
    while (socket_.is_readable()) take_reply();
    return waits_;
  }

 private:
  // Adds the chunk's steps before `end` that were not sent yet to parts_. Returns whether there are
  // any.
  bool add_steps(uint64_t end) {
    if (end == num_sent_) return false;
    const uint64_t offset = num_sent_ - (num_chunks_ - 1) * schema_.steps_per_chunk();
    steps_.num_steps = static_cast<uint32_t>(end - num_sent_);
    parts_.push_back(transport::part_of(&steps_, sizeof steps_));
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      const uint64_t bytes = schema_.columns()[c].num_bytes;
      parts_.push_back(transport::part_of(chunk_.get() + schema_.offset(c) + offset * bytes,
                                          steps_.num_steps * bytes));
    }
    if (schema_.num_context() > 0) {
      parts_.push_back(
          transport::part_of(chunk_.get() + schema_.ages_offset() + offset, steps_.num_steps));
    }
    return true;
  }

  // Sends parts_, and keeps the rest in left_ where not all can be sent at once. False where
  // nothing was sent before the deadline.
  bool send(Deadline deadline) {
    while (socket_.is_readable()) take_reply();
    while (!left_.empty()) {
      if (!wait(deadline, true)) return false;
    }
    std::span<iovec> parts = parts_;
    uint64_t num_bytes = 0;
    for (const iovec& part : parts) num_bytes += part.iov_len;
    uint64_t num_left = num_bytes;
    while (true) {
      if (!socket_.try_send(&parts)) take_last_word();
      num_left = 0;
      for (const iovec& part : parts) num_left += part.iov_len;
      if (num_left == 0 || !wait(deadline, true)) break;
    }
    if (num_left == num_bytes) return false;
    for (const iovec& part : parts) {
      const auto* data = static_cast<const std::byte*>(part.iov_base);
      left_.insert(left_.end(), data, data + part.iov_len);
    }
    ++num_messages_;
    return true;
  }

  // Sends left_, and blocks until a reply was read or, where the caller `sends`, the stream takes
  // bytes; false where the deadline passes.
  bool wait(Deadline deadline, bool sends) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd socket{socket_.descriptor(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0};
    if (!socket_.is_readable()) {
      poll(&socket, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000)));
    }
    if (socket_.is_readable()) take_reply();
    if (!left_.empty()) {
      iovec part = transport::part_of(left_.data(), left_.size());
      std::span<iovec> rest(&part, 1);
      if (!socket_.try_send(&rest)) take_last_word();
      left_.erase(left_.begin(),
                  left_.end() - static_cast<std::ptrdiff_t>(rest.empty() ? 0 : part.iov_len));
    }
    return true;
  }

  // Throws the error that the store sent, or GoneError.
  [[noreturn]] void take_last_word() {
    while (true) take_reply();
  }

  void take_reply() {
    if (!error_.empty()) throw RefusedError(error_);
    Reply kind;
    read(&kind, sizeof kind);
    if (kind == Reply::kFlushed) {
      Flushed message;
      if (!socket_.read_rest(&message)) throw GoneError(name_);
      num_flushed_ = message.number;
    } else if (kind == Reply::kWaits || kind == Reply::kError) {
      Waits message;  // an ErrorReply has the same fields
      if (!socket_.read_rest(&message) || message.num_bytes > kMaxTextBytes) {
        throw GoneError(name_);
      }
      std::string text(message.num_bytes, ' ');
      read(text.data(), text.size());
      if (kind == Reply::kError) fail(text);
      waits_ = text;
    } else {
      fail("reply (" + std::to_string(static_cast<uint32_t>(kind)) +
           ") must be one of a writer's; the store is of another version");
    }
  }

  void read(void* to, uint64_t num_bytes) {
    if (!socket_.read(to, num_bytes)) throw GoneError(name_);
  }

  [[noreturn]] void fail(const std::string& error) {
    error_ = error;
    throw RefusedError(error_);
  }

  transport::StreamSocket socket_;
  const std::string name_;
  const uint64_t next_sequence_;
  const engine::Schema schema_;
  const std::shared_ptr<std::byte> chunk_;
  uint64_t num_chunks_ = 0;  // begun
  uint64_t num_sent_ = 0;    // steps
  Steps steps_;
  std::vector<iovec> parts_;     // of the message that is being sent
  std::vector<std::byte> left_;  // of the last message, not sent yet
  uint64_t num_messages_ = 0;
  uint64_t num_flushes_ = 0;  // asked for
  uint64_t num_flushed_ = 0;  // answered
  uint64_t flushed_at_ = 0;   // messages that the last one covers
  std::string waits_;
  std::string error_;
};

}  // namespace

NetWriterPort net_writer(const NetAddress& address, uint64_t next_sequence,
                         const engine::Schema& schema) {
  const std::shared_ptr<std::byte> chunk = Arena(schema.chunk_bytes()).take();
  return {std::make_unique<NetWriter>(address, next_sequence, schema, chunk),
          SlabMap(1, schema.chunk_bytes(), [chunk](uint32_t) { return chunk.get(); })};
}

}  // namespace tengen::store
