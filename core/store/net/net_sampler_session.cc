// A sampler on another host: batches are sent from the slabs where their steps lie.

#include <condition_variable>
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

// One thread reads, and one draws and sends, so that acknowledgements never wait behind a batch.
class NetSamplerSession final : public NetSession {
 public:
  NetSamplerSession(NetParts parts, uint32_t num_samples, uint32_t num_steps)
      : NetSession(std::move(parts.connection), std::move(parts.name)),
        channel_(std::move(parts.channel)),
        slabs_(std::move(parts.slabs)),
        num_samples_(num_samples),
        batch_(parts.schema, num_samples, num_steps) {}

  ~NetSamplerSession() override {
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
  void end() noexcept override { channel_.reset(); }

  // False where the client has gone.
  bool take() {
    switch (const Request kind = read<Request>(message_)) {
      case Request::kSample: {
        pass_on();
        const std::scoped_lock lock(mutex_);
        ++num_wanted_;
        changed_.notify_all();
        return true;
      }
      case Request::kAck:
        wait_until_sent(read<OfLease>(message_).lease);
        pass_on();
        return true;
      case Request::kGiveBack:
        wait_until_sent(read<OfLease>(message_).lease);
        pass_on();
        return true;
      default:
        refuse(kind);
    }
  }

  // No message of a sampler waits, so that this thread has nothing to tell the client.
  void pass_on() {
    iovec part = transport::part_of(message_.data(), message_.size());
    channel_->send({&part, 1}, Deadline::max(), Urgency::kNow);
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
        channel_->pop_reply();
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

  bool draw() {
    reply_ = {};
    return wait_for(*channel_,
                    [&](Deadline deadline) {
                      reply_ = channel_->wait_for_reply(deadline);
                      return reply_.data() != nullptr || is_over();
                    }) &&
           reply_.data() != nullptr;
  }

  bool is_over() {
    const std::scoped_lock lock(mutex_);
    return is_over_;
  }

  bool send() {
    auto message = read<Batch>(reply_);
    const uint64_t index_bytes = num_samples_ * (sizeof(int64_t) + sizeof(double));
    const std::span<const std::byte> index = reply_.subspan(sizeof message, index_bytes);
    take_all(reply_.subspan(sizeof message + index_bytes), &pieces_);
    message.num_bytes = static_cast<uint32_t>(sizeof message + index_bytes);
    parts_.assign({transport::part_of(&message, sizeof message),
                   transport::part_of(index.data(), index.size())});
    batch_.list(slabs_.of(pieces_), pieces_, &parts_);
    return socket_.send(parts_);
  }

  std::unique_ptr<Channel> channel_;
  SlabMap slabs_;
  const uint32_t num_samples_;
  BatchParts batch_;
  std::vector<std::byte> message_;  // from the client
  // The batch that is being sent.
  std::span<const std::byte> reply_;
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

std::unique_ptr<NetSession> net_sampler_session(NetParts parts, uint32_t num_samples,
                                                uint32_t num_steps) {
  return std::make_unique<NetSamplerSession>(std::move(parts), num_samples, num_steps);
}

}  // namespace tengen::store
