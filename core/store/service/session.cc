#include "store/service/session.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "base/error.h"

namespace tengen::store {
namespace {

constexpr std::chrono::milliseconds kRetry{50};

}  // namespace

Session::Session(const SessionAddress& address)
    : descriptor_(address.descriptor),
      reconnect_(address.reconnect),
      patience_(address.patience),
      memory_(transport::SharedMemory::open(address.memory_path, address.layout.num_bytes())),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(address.layout.requests(memory_.data())),
      replies_(address.layout.replies(memory_.data())) {
  if (header_->version.load() != kProtocolVersion) {
    throw Error("session (" + address.memory_path +
                ") must be of the same version of tengen; install one version everywhere");
  }
  header_->is_taken.store(1);
}

Session::~Session() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::byte* Session::reserve(uint32_t num_bytes, Deadline deadline) {
  if (!replies_.is_empty()) check_error();
  std::byte* room = requests_.reserve(num_bytes);
  if (room != nullptr) return room;
  wait_until(deadline, [&] { return (room = requests_.reserve(num_bytes)) != nullptr; });
  return room;
}

std::span<const std::byte> Session::wait_for_reply(Deadline deadline) {
  std::span<const std::byte> reply;
  wait_until(deadline, [&] { return (reply = replies_.front()).data() != nullptr; });
  check_error();
  return reply;
}

bool Session::wait_for_all(Deadline deadline) {
  return wait_until(
      deadline, [&] { return header_->num_applied.load(std::memory_order_acquire) == num_sent_; });
}

std::string Session::waits() const { return read_reason(*header_); }

template <class Ready>
bool Session::wait_until(Deadline deadline, Ready&& ready) {
  if (!error_.empty()) throw RefusedError(error_);
  while (!ready()) {
    check_error();
    header_->client_sleeps.exchange(kSleeps, std::memory_order_acq_rel);
    if (ready()) break;
    // A server that sleeps has seen all requests; one that naps may not have, so wake it.
    wake_if(kNaps, &header_->server_sleeps, descriptor_);
    if (gone_since_) look_for_server(deadline);
    if (!sleep(deadline)) return ready();
  }
  header_->client_sleeps.store(kAwake, std::memory_order_relaxed);
  return true;
}

// Blocks until a byte comes or the other side goes; false where the deadline passes.
bool Session::sleep(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  if (descriptor_ < 0) return true;
  pollfd socket{descriptor_, POLLIN, 0};
  const int timeout = static_cast<int>(std::min<int64_t>(left.count(), 1'000'000));
  if (poll(&socket, 1, timeout) <= 0) return true;  // the caller tests the deadline again
  char bytes[64];
  const ssize_t num_bytes = recv(descriptor_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (num_bytes == 0 || (num_bytes < 0 && errno != EAGAIN && errno != EINTR)) {
    gone_since_ = std::chrono::steady_clock::now();
  }
  return true;
}

// Tries once, and then sleeps for a moment.
void Session::look_for_server(Deadline deadline) {
  check_error();
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  const auto now = std::chrono::steady_clock::now();
  if (header_->is_over.load() == 0) descriptor_ = reconnect_();
  if (descriptor_ >= 0) {
    gone_since_.reset();
  } else if (header_->is_over.load() != 0 || now - *gone_since_ >= patience_) {
    throw GoneError(memory_.path());
  } else {
    std::this_thread::sleep_until(std::min(deadline, now + kRetry));
  }
}

// The error of a request is the last reply that there will be.
void Session::check_error() {
  const std::span<const std::byte> reply = replies_.front();
  if (reply.data() == nullptr || read<ErrorReply>(reply).kind != Reply::kError) return;
  const auto message = read<ErrorReply>(reply);
  error_.assign(reinterpret_cast<const char*>(reply.data()) + sizeof message,
                std::min<size_t>(message.num_bytes, reply.size() - sizeof message));
  throw RefusedError(error_);
}

namespace {

class RemoteWriter final : public WriterPort {
 public:
  RemoteWriter(const SessionAddress& address, uint64_t next_sequence, uint32_t num_ahead)
      : session_(address), next_sequence_(next_sequence), num_ahead_(std::max(1u, num_ahead)) {}

  uint64_t next_sequence() const override { return next_sequence_; }

  std::optional<uint32_t> begin_chunk(Deadline deadline) override {
    take_replies();
    if (!has_asked_ && slots_.size() <= num_ahead_ / 2) {
      const uint32_t count = num_ahead_ - static_cast<uint32_t>(slots_.size());
      if (!session_.send(TakeSlots{Request::kTakeSlots, count}, deadline)) return std::nullopt;
      has_asked_ = true;
    }
    while (slots_.empty()) {
      if (session_.wait_for_reply(deadline).data() == nullptr) return std::nullopt;
      take_replies();
    }
    if (!session_.send_soon(Append{Request::kAppend, slots_.front()}, deadline))
      return std::nullopt;
    const uint32_t slot = slots_.front();
    slots_.pop_front();
    return slot;
  }

  bool insert(const InsertRun& run, Deadline deadline) override {
    const uint32_t max_items =
        (session_.max_request() - static_cast<uint32_t>(sizeof(InsertMessage))) / sizeof(double);
    for (uint32_t done = 0; done < run.count;) {
      const uint32_t count = std::min(run.count - done, max_items);
      const auto [message, priorities] = message_of(run, done, count);
      if (!session_.send_soon(message, deadline, std::as_bytes(priorities))) return false;
      done += count;
    }
    return true;
  }

  void release_before(uint64_t first) override {
    // Where the ring is full the release is sent the next time.
    session_.send_soon(Release{Request::kRelease, 0, first}, Deadline::min());
  }

  bool flush(Deadline deadline) override { return session_.wait_for_all(deadline); }
  std::string waits() override { return session_.waits(); }

 private:
  void take_replies() {
    while (session_.has_reply()) {
      const std::span<const std::byte> reply = session_.wait_for_reply(Deadline::max());
      const auto slots = read<Slots>(reply);
      for (uint32_t i = 0; i < slots.count; ++i) {
        slots_.push_back(read<uint32_t>(reply.subspan(sizeof slots + i * sizeof(uint32_t))));
      }
      has_asked_ = false;
      session_.pop_reply();
    }
  }

  Session session_;
  const uint64_t next_sequence_;
  const uint32_t num_ahead_;
  std::deque<uint32_t> slots_;
  bool has_asked_ = false;  // has asked for slots, and has no answer yet
};

class RemoteSampler final : public SamplerPort {
 public:
  RemoteSampler(const SessionAddress& address, uint32_t num_ahead)
      : session_(address), num_ahead_(num_ahead) {}

  bool next(Deadline deadline, Delivery* delivery) override {
    if (peeked_) {
      *delivery = std::move(*peeked_);
      peeked_.reset();
    } else {
      if (!ask(std::max(1u, num_ahead_), deadline)) return false;
      const std::span<const std::byte> reply = session_.wait_for_reply(deadline);
      if (reply.data() == nullptr) return false;
      take_batch(reply, delivery);
    }
    --num_asked_;
    ask(num_ahead_, Deadline::min());
    return true;
  }

  const Delivery* peek() override {
    if (peeked_) return &*peeked_;
    const std::span<const std::byte> reply = session_.peek_reply();
    if (reply.data() == nullptr || read<Reply>(reply) != Reply::kBatch) return nullptr;
    Delivery delivery;
    take_batch(reply, &delivery);
    return &peeked_.emplace(std::move(delivery));
  }

  void ack(uint64_t lease, std::span<const double> priorities) override {
    session_.post(Ack{Request::kAck, static_cast<uint32_t>(priorities.size()), lease},
                  Deadline::max(), std::as_bytes(priorities));
    // The request for the next batch goes with the same wake-up, so that next() need not send it.
    const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
    if (asks && session_.post(SampleMessage{}, Deadline::min())) ++num_asked_;
    session_.ring();
  }

  void give_back(uint64_t lease) override {
    session_.send(GiveBack{Request::kGiveBack, 0, lease}, Deadline::max());
  }

  void keep(uint64_t lease) override {
    session_.send(Keep{Request::kKeep, 0, lease}, Deadline::max());
  }

  void let_go(uint64_t lease) override {
    session_.send(LetGo{Request::kLetGo, 0, lease}, Deadline::max());
  }

  std::string waits() override { return session_.waits(); }

 private:
  // Requests batches until as many as wished are under way. Returns whether it did.
  bool ask(uint32_t wished, Deadline deadline) {
    while (num_asked_ < wished) {
      if (!session_.send(SampleMessage{}, deadline)) break;
      ++num_asked_;
    }
    return num_asked_ > 0;
  }

  void take_batch(std::span<const std::byte> reply, Delivery* delivery) {
    const auto batch = read<Batch>(reply);
    delivery->lease = batch.lease;
    delivery->table_size = batch.table_size;
    std::span<const std::byte> rest = reply.subspan(sizeof batch);
    rest = take(rest, batch.num_samples, &delivery->keys);
    rest = take(rest, batch.num_samples, &delivery->probabilities);
    take(rest, batch.num_pieces, &delivery->pieces);
    session_.pop_reply();
  }

  Session session_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;  // batches that were requested and that next() has not returned
  std::optional<Delivery> peeked_;
};

}  // namespace

std::unique_ptr<WriterPort> remote_writer(const SessionAddress& address, uint64_t next_sequence,
                                          uint32_t num_ahead) {
  return std::make_unique<RemoteWriter>(address, next_sequence, num_ahead);
}

std::unique_ptr<SamplerPort> remote_sampler(const SessionAddress& address, uint32_t num_ahead) {
  return std::make_unique<RemoteSampler>(address, num_ahead);
}

}  // namespace tengen::store
