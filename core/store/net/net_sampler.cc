#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "store/net/net_client.h"
#include "store/net/net_protocol.h"
#include "store/service/arena.h"
#include "transport/stream_socket.h"

namespace tengen::store {
namespace {

// A thread receives batches, each straight into the buffer that the caller gets.
class NetSampler final : public SamplerPort {
 public:
  NetSampler(const NetAddress& address, const BatchLayout& layout, uint32_t num_samples,
             uint32_t num_ahead)
      : socket_(address.descriptor),
        name_(address.name),
        num_bytes_(layout.num_bytes),
        num_samples_(num_samples),
        num_ahead_(num_ahead),
        arena_(layout.num_bytes),
        receiver_([this] { receive(); }) {}

  ~NetSampler() override {
    socket_.shut_down();
    receiver_.join();
  }

  bool next(Deadline deadline, Delivery* delivery) override {
    ask(std::max(1u, num_ahead_));
    {
      std::unique_lock lock(mutex_);
      const auto is_ready = [&] { return !ready_.empty() || is_over_; };
      if (!changed_.wait_until(lock, deadline, is_ready)) return false;
      if (ready_.empty()) throw_end();
      *delivery = std::move(ready_.front());
      ready_.pop_front();
    }
    --num_asked_;
    ask(num_ahead_);
    return true;
  }

  void ack(uint64_t lease, std::span<const double> priorities) override {
    const Ack message{Request::kAck, static_cast<uint32_t>(priorities.size()), lease};
    // The request for the next batch goes in the same packet, so that next() need not send it.
    const SampleMessage more;
    const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(priorities.data(), priorities.size_bytes()),
                     transport::part_of(&more, asks ? sizeof more : 0)};
    send(parts);
    num_asked_ += asks ? 1 : 0;
  }

  void give_back(uint64_t lease) override {
    const GiveBack message{Request::kGiveBack, 0, lease};
    iovec part = transport::part_of(&message, sizeof message);
    send({&part, 1});
  }

  std::string waits() override {
    const std::scoped_lock lock(mutex_);
    return waits_;
  }

 private:
  // Requests batches until as many as wished are under way.
  void ask(uint32_t wished) {
    const SampleMessage message;
    while (num_asked_ < wished) {
      iovec part = transport::part_of(&message, sizeof message);
      send({&part, 1});
      ++num_asked_;
    }
  }

  void send(std::span<iovec> parts) {
    if (socket_.send(parts)) return;
    // The receiver notices the end too, after it has read the store's error, if one was sent.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_; });
    throw_end();
  }

  // Precondition: is_over_.
  [[noreturn]] void throw_end() const {
    if (error_.empty()) throw GoneError(name_);
    throw RefusedError(error_);
  }

  void receive() {
    Reply kind;
    std::string error;
    while (error.empty() && socket_.read(&kind, sizeof kind)) {
      if (kind == Reply::kBatch) {
        if (!receive_batch()) break;
      } else if (kind == Reply::kError || kind == Reply::kWaits) {
        std::string text;
        if (!receive_text(&text)) break;
        if (kind == Reply::kError) {
          error = text;
        } else {
          const std::scoped_lock lock(mutex_);
          waits_ = text;
        }
      } else {
        error = "reply (" + std::to_string(static_cast<uint32_t>(kind)) +
                ") must be one of a sampler's; the store is of another version";
      }
    }
    const std::scoped_lock lock(mutex_);
    error_ = error;
    is_over_ = true;
    changed_.notify_all();
  }

  bool receive_batch() {
    Batch message;
    if (!socket_.read_rest(&message) || message.num_samples != num_samples_) return false;
    Delivery delivery;
    delivery.lease = message.lease;
    delivery.table_size = message.table_size;
    delivery.keys.resize(num_samples_);
    delivery.probabilities.resize(num_samples_);
    delivery.data = arena_.take();
    if (!socket_.read(delivery.keys.data(), num_samples_ * sizeof(int64_t)) ||
        !socket_.read(delivery.probabilities.data(), num_samples_ * sizeof(double)) ||
        !socket_.read(delivery.data.get(), num_bytes_)) {
      return false;
    }
    const std::scoped_lock lock(mutex_);
    ready_.push_back(std::move(delivery));
    changed_.notify_all();
    return true;
  }

  bool receive_text(std::string* text) {
    Waits message;  // an ErrorReply has the same fields
    if (!socket_.read_rest(&message) || message.num_bytes > kMaxTextBytes) return false;
    text->resize(message.num_bytes);
    return socket_.read(text->data(), text->size());
  }

  transport::StreamSocket socket_;
  const std::string name_;
  const uint64_t num_bytes_;
  const uint32_t num_samples_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;
  Arena arena_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Delivery> ready_;
  std::string waits_;
  bool is_over_ = false;  // no more messages will come
  std::string error_;     // the error that ended the session
  std::thread receiver_;
};

}  // namespace

std::unique_ptr<SamplerPort> net_sampler(const NetAddress& address, const BatchLayout& layout,
                                         uint32_t num_samples, uint32_t num_ahead) {
  return std::make_unique<NetSampler>(address, layout, num_samples, num_ahead);
}

}  // namespace tengen::store
