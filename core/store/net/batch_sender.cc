// Sends batches to a client on another host, directly from the slabs that contain the steps.

#include <sys/uio.h>

#include <condition_variable>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "store/net/net_session.h"
#include "store/session/encoding.h"
#include "store/steps/gather.h"
#include "transport/shared_memory.h"

namespace tengen::store {
namespace {

// The minimum size of a piece that is sent directly from its slab, without a copy.
constexpr uint64_t kMinPartBytes = 1024;

// Divides a batch into the parts of a gathering write. Large pieces are sent directly from their
// slabs. Small pieces are copied into one buffer first, because a part costs more than the copy of
// a few bytes. Not thread-safe.
class BatchParts {
 public:
  BatchParts(engine::Schema schema, uint32_t num_samples, uint32_t num_steps)
      : schema_(std::move(schema)),
        layout_(schema_, num_samples, num_steps),
        gathered_(transport::SharedMemory::anonymous(layout_.num_bytes)) {}

  // Appends the parts of a batch, layout.num_bytes in total. They are valid while the pieces' slots
  // are held, and until the next call.
  void list(const engine::Slabs& slabs, std::span<const engine::Piece> pieces,
            std::vector<iovec>* parts) {
    uint64_t listed = 0;    // bytes of the batch that are in `parts` or in the buffer
    uint64_t gathered = 0;  // bytes at the end of the buffer that are not in `parts` yet
    const auto add_gathered = [&] {
      if (gathered == 0) return;
      parts->push_back({gathered_.data() + listed - gathered, gathered});
      gathered = 0;
    };
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      const uint64_t bytes = schema_.columns()[c].num_bytes;
      gathered += layout_.offsets[c] - listed;  // includes the padding between columns
      listed = layout_.offsets[c];
      for (const engine::Piece& piece : pieces) {
        std::byte* from = slabs.at(piece.slot) + schema_.offset(c) + piece.offset * bytes;
        const uint64_t num_bytes = piece.num_steps * bytes;
        if (num_bytes < kMinPartBytes) {
          std::memcpy(gathered_.data() + listed, from, num_bytes);
          gathered += num_bytes;
          listed += num_bytes;
        } else {
          add_gathered();
          parts->push_back({from, num_bytes});
          listed += num_bytes;
        }
      }
    }
    gathered += layout_.num_bytes - listed;
    listed = layout_.num_bytes;
    add_gathered();
  }

 private:
  const engine::Schema schema_;
  const BatchLayout layout_;
  const transport::SharedMemory gathered_;  // the buffer for small pieces, as large as a batch
};

// The session of a remote sampler. One thread reads messages and another samples and sends batches,
// so that acknowledgements never wait for a batch.
class BatchSender final : public NetSession {
 public:
  BatchSender(NetParts parts, uint32_t num_samples, uint32_t num_steps)
      : NetSession(std::move(parts.connection), std::move(parts.name)),
        session_(std::move(parts.session)),
        slabs_(std::move(parts.slabs)),
        num_samples_(num_samples),
        batch_(parts.schema, num_samples, num_steps) {}

  ~BatchSender() override {
    // Stops the sending thread, which still runs if serve() was never called.
    end_sending("");
    if (sender_.joinable()) sender_.join();
  }

  void prepare() override {
    sender_ = start_thread("a sampler", [this] { send_batches(); });
  }

 private:
  // After an error, the sender finishes its current batch and then reports the error.
  void serve() override {
    const uint64_t max_bytes = sizeof(OfLease) + num_samples_ * sizeof(double);
    std::string error = error_of([&] {
      while (read_message(socket_, max_bytes, &message_) && take()) {
      }
    });
    const bool is_refused = !error.empty();
    end_sending(std::move(error));  // moves the error, because there may be no memory for a copy
    if (!is_refused) socket_.shut_down();  // ends a blocked send
    sender_.join();
  }
  void end() noexcept override { session_.reset(); }

  // Applies one message. Returns false if the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSample: {
        session_->apply(message_, Deadline::max());  // send_batches() samples the batch
        const std::scoped_lock lock(mutex_);
        ++num_wanted_;
        changed_.notify_all();
        return true;
      }
      case Request::kAck:
      case Request::kGiveBack:
        wait_until_sent(read<OfLease>(message_).lease);
        session_->apply(message_, Deadline::max());
        return true;
      default:
        refuse(kind);
    }
  }

  // Blocks until the batch `lease` has been sent. A client may acknowledge a batch before the call
  // that sends it has returned, but the batch's steps must stay in memory until then.
  void wait_until_sent(uint64_t lease) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return being_sent_ != lease; });
  }

  // Makes the sending thread stop. It first sends `error` if that is not empty.
  void end_sending(std::string error) {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }

  void send_batches() noexcept {
    std::string error = error_of([&] {
      while (wait_until_wanted() && draw()) {
        set_being_sent(read<Batch>(session_->peek_reply()).lease);
        const bool is_sent = send();
        set_being_sent(std::nullopt);
        if (!is_sent) break;
        session_->pop_reply();
      }
    });
    set_being_sent(std::nullopt);
    if (error.empty()) {
      const std::scoped_lock lock(mutex_);
      error.swap(error_);
    }
    if (!error.empty()) send_error(error);
  }

  void set_being_sent(std::optional<uint64_t> lease) {
    const std::scoped_lock lock(mutex_);
    being_sent_ = lease;
    changed_.notify_all();
  }

  bool wait_until_wanted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_ || num_wanted_ > 0; });
    if (is_over_) return false;
    --num_wanted_;
    return true;
  }

  // Samples a batch. Returns false if the session has ended.
  bool draw() {
    const auto attempt = [&](Deadline deadline) {
      return !session_->wait_for_reply(deadline).empty() || is_over();
    };
    return wait_for([&] { return session_->waits(); }, attempt) && !session_->peek_reply().empty();
  }
  bool is_over() {
    const std::scoped_lock lock(mutex_);
    return is_over_;
  }

  bool send() {
    auto message = read<Batch>(session_->peek_reply());
    const std::span<const std::byte> rest = session_->peek_reply().subspan(sizeof message);
    const uint64_t index_bytes = num_samples_ * (sizeof(int64_t) + sizeof(double));
    const std::span<const std::byte> index = rest.first(index_bytes);
    take_all(rest.subspan(index_bytes), &pieces_);
    message.num_bytes = static_cast<uint32_t>(sizeof message + index_bytes);
    parts_.assign({transport::part_of(&message, sizeof message),
                   transport::part_of(index.data(), index.size())});
    batch_.list(slabs_.of(pieces_), pieces_, &parts_);
    return socket_.send(parts_);
  }

  std::unique_ptr<LocalChannel> session_;  // null after the session has ended
  SlabMap slabs_;
  const uint32_t num_samples_;
  BatchParts batch_;
  std::vector<std::byte> message_;     // the last message from the client
  std::vector<engine::Piece> pieces_;  // pieces of the batch that is being sent
  std::vector<iovec> parts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t num_wanted_ = 0;             // batches that were requested and not sampled yet
  std::optional<uint64_t> being_sent_;  // the lease of the batch that is being sent
  bool is_over_ = false;
  std::string error_;
  std::thread sender_;
};

}  // namespace

std::unique_ptr<NetSession> batch_sender(NetParts parts, uint32_t num_samples, uint32_t num_steps) {
  return std::make_unique<BatchSender>(std::move(parts), num_samples, num_steps);
}

}  // namespace tengen::store
