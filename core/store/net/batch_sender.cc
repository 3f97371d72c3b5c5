// Batches for a client on another host are sent from the slabs where their steps lie.

#include <condition_variable>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "store/net/batch_parts.h"
#include "store/net/net_session.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

using engine::Engine;

// One thread reads, and one draws and sends, so that acknowledgements never wait behind a batch.
class BatchSender final : public NetSession, private Outbox {
 public:
  BatchSender(NetParts parts, uint32_t num_samples, uint32_t num_steps)
      : NetSession(std::move(parts.connection), std::move(parts.name)),
        session_(std::move(parts.session)),
        slabs_(std::move(parts.slabs)),
        num_samples_(num_samples),
        batch_(parts.schema, num_samples, num_steps) {}

  ~BatchSender() override {
    // Not begun.
    end_sending("");
    if (sender_.joinable()) sender_.join();
  }

  void prepare() override {
    sender_ = start_thread("a sampler", [this] { send_batches(); });
  }

 private:
  // What is refused is told by the sender, behind the batch that it is sending.
  void serve() override {
    const uint64_t max_bytes = sizeof(OfLease) + num_samples_ * sizeof(double);
    std::string error = error_of([&] {
      while (read_message(socket_, max_bytes, &message_) && take()) {
      }
    });
    const bool is_refused = !error.empty();
    end_sending(std::move(error));         // without a copy, for which there may be no memory
    if (!is_refused) socket_.shut_down();  // ends a send that blocks
    sender_.join();
  }
  void end() noexcept override { session_.reset(); }

  // False where the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSample: {
        // It changes nothing that another thread waits for: the batch is drawn by send_batches().
        session_->store().try_change_open([&](Engine& engine) {
          session_->served().apply(engine, message_);
          return Progress::kNone;
        });
        const std::scoped_lock lock(mutex_);
        ++num_wanted_;
        changed_.notify_all();
        return true;
      }
      case Request::kAck:
      case Request::kGiveBack:
        wait_until_sent(read<OfLease>(message_).lease);
        session_->store().change_when(
            Deadline::max(),
            [&](Engine& engine) { return session_->served().apply(engine, message_); },
            // What is given back is taken by a closed store too.
            /*also_closed=*/kind == Request::kGiveBack);
        return true;
      default:
        refuse(kind);
    }
  }

  // A client may acknowledge a batch before the call that sends it has returned; until then the
  // batch's steps must stay.
  void wait_until_sent(uint64_t lease) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return being_sent_ != lease; });
  }

  // Ends the sending of batches; the error, if there is one, is still sent.
  void end_sending(std::string error) {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }

  void send_batches() noexcept {
    std::string error = error_of([&] {
      while (wait_until_wanted() && draw()) {
        set_being_sent(read<Batch>(reply_).lease);
        const bool is_sent = send();
        set_being_sent(std::nullopt);
        if (!is_sent) break;
        num_reply_bytes_ = 0;
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

  // False where the session is over.
  bool draw() {
    return wait_for([&] { return session_->waits(); },
                    [&](Deadline deadline) { return answer(deadline) || is_over(); }) &&
           num_reply_bytes_ > 0;
  }

  // Draws a batch, if there is one before the deadline.
  bool answer(Deadline deadline) {
    std::exception_ptr refused;
    session_->store().change_when(deadline, [&](Engine& engine) {
      Progress progress = Progress::kNone;
      try {
        progress = session_->served().answer(engine, *this);
      } catch (...) {
        refused = std::current_exception();  // passed on, as other threads must be woken first
      }
      return num_reply_bytes_ > 0 || refused ? Progress::kDone : progress;
    });
    if (refused) std::rethrow_exception(refused);
    return num_reply_bytes_ > 0;
  }

  std::byte* reserve(uint32_t num_bytes) override {
    if (num_reply_bytes_ > 0) return nullptr;
    if (reply_.size() < num_bytes) reply_.resize(num_bytes);
    return reply_.data();
  }
  void stage(uint32_t num_bytes) override { num_reply_bytes_ = num_bytes; }

  bool is_over() {
    const std::scoped_lock lock(mutex_);
    return is_over_;
  }

  bool send() {
    auto message = read<Batch>(reply_);
    const std::span<const std::byte> rest =
        std::span<const std::byte>(reply_).first(num_reply_bytes_).subspan(sizeof message);
    const uint64_t index_bytes = num_samples_ * (sizeof(int64_t) + sizeof(double));
    const std::span<const std::byte> index = rest.first(index_bytes);
    take_all(rest.subspan(index_bytes), &pieces_);
    message.num_bytes = static_cast<uint32_t>(sizeof message + index_bytes);
    parts_.assign({transport::part_of(&message, sizeof message),
                   transport::part_of(index.data(), index.size())});
    batch_.list(slabs_.of(pieces_), pieces_, &parts_);
    return socket_.send(parts_);
  }

  std::unique_ptr<OpenedSession> session_;  // null once it is over
  SlabMap slabs_;
  const uint32_t num_samples_;
  BatchParts batch_;
  std::vector<std::byte> message_;  // from the client
  // The batch that is being sent.
  std::vector<std::byte> reply_;
  uint32_t num_reply_bytes_ = 0;  // 0: there is none
  std::vector<engine::Piece> pieces_;
  std::vector<iovec> parts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t num_wanted_ = 0;             // batches that were requested and not drawn
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
