#include "service/session.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/error.h"

namespace tengen::service {

Session::Session(const SessionAddress& address)
    : descriptor_(address.descriptor),
      memory_(ipc::SharedMemory::open(address.memory_path)),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(address.layout.requests(memory_.data())),
      replies_(address.layout.replies(memory_.data())) {
  if (memory_.num_bytes() < address.layout.num_bytes() ||
      header_->version.load() != kProtocolVersion) {
    throw Error("session (" + address.memory_path +
                ") must be of the same version of tengen; install one version everywhere");
  }
}

Session::~Session() { ::close(descriptor_); }

std::byte* Session::reserve(uint32_t num_bytes, Deadline deadline) {
  if (!replies_.is_empty()) check_error();
  std::byte* room = requests_.reserve(num_bytes);
  if (room != nullptr) return room;
  wait_until(deadline, [&] { return (room = requests_.reserve(num_bytes)) != nullptr; });
  return room;
}

void Session::commit(uint32_t num_bytes) {
  requests_.commit(num_bytes);
  ++num_sent_;
  wake(&header_->server_sleeps, descriptor_);
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
  if (!error_.empty()) throw Error(error_);
  while (!ready()) {
    check_error();
    header_->client_sleeps.exchange(1, std::memory_order_acq_rel);
    if (ready()) break;
    if (is_gone_) {
      throw Error("store (" + memory_.path() +
                  ") has ended, or has closed this client; connect again");
    }
    if (!sleep(deadline)) return ready();
  }
  header_->client_sleeps.store(0, std::memory_order_relaxed);
  return true;
}

// Until a byte comes, the other side goes, or the deadline passes, which it tells by false.
bool Session::sleep(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd socket{descriptor_, POLLIN, 0};
  const int timeout = static_cast<int>(std::min<int64_t>(left.count(), 1'000'000));
  if (poll(&socket, 1, timeout) <= 0) return true;  // the deadline is looked at again
  char bytes[64];
  const ssize_t num_bytes = recv(descriptor_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (num_bytes == 0 || (num_bytes < 0 && errno != EAGAIN && errno != EINTR)) is_gone_ = true;
  return true;
}

// The error of a request is the last reply that there will be.
void Session::check_error() {
  const std::span<const std::byte> reply = replies_.front();
  if (reply.data() == nullptr || read<ErrorReply>(reply).kind != Reply::kError) return;
  const auto message = read<ErrorReply>(reply);
  error_.assign(reinterpret_cast<const char*>(reply.data()) + sizeof message,
                std::min<size_t>(message.num_bytes, reply.size() - sizeof message));
  throw Error(error_);
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
    if (!session_.send(Append{Request::kAppend, slots_.front()}, deadline)) return std::nullopt;
    const uint32_t slot = slots_.front();
    slots_.pop_front();
    return slot;
  }

  bool insert(const InsertRun& run, Deadline deadline) override {
    const uint32_t max_items =
        (session_.max_request() - static_cast<uint32_t>(sizeof(InsertMessage))) / sizeof(double);
    for (uint32_t done = 0; done < run.count;) {
      const uint32_t count = std::min(run.count - done, max_items);
      const bool is_shared = run.priorities.size() == 1;
      const auto priorities = is_shared ? run.priorities : run.priorities.subspan(done, count);
      const InsertMessage message{Request::kInsert,
                                  static_cast<uint32_t>(priorities.size()),
                                  run.table,
                                  run.version,
                                  run.sequence + done,
                                  run.first + uint64_t{done} * run.stride,
                                  count,
                                  run.stride,
                                  run.num_steps,
                                  0};
      if (!session_.send(message, deadline, std::as_bytes(priorities))) return false;
      done += count;
    }
    return true;
  }

  void release_before(uint64_t first) override {
    // Without a place in a full ring the steps stay until the next time.
    session_.send(Release{Request::kRelease, 0, first}, Deadline::min());
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
  bool has_asked_ = false;  // for slots, and has no answer yet
};

class RemoteSampler final : public SamplerPort {
 public:
  RemoteSampler(const SessionAddress& address, uint32_t num_ahead)
      : session_(address), num_ahead_(num_ahead) {}

  bool next(Deadline deadline, Delivery* delivery) override {
    if (!ask(std::max(1u, num_ahead_), deadline)) return false;
    const std::span<const std::byte> reply = session_.wait_for_reply(deadline);
    if (reply.data() == nullptr) return false;
    const auto batch = read<Batch>(reply);
    delivery->lease = batch.lease;
    delivery->table_size = batch.table_size;
    std::span<const std::byte> rest = reply.subspan(sizeof batch);
    rest = take(rest, batch.num_samples, &delivery->keys);
    rest = take(rest, batch.num_samples, &delivery->probabilities);
    take(rest, batch.num_pieces, &delivery->pieces);
    session_.pop_reply();
    --num_asked_;
    ask(num_ahead_, Deadline::min());
    return true;
  }

  void ack(uint64_t lease, std::span<const double> priorities) override {
    session_.send(Ack{Request::kAck, static_cast<uint32_t>(priorities.size()), lease},
                  Deadline::max(), std::as_bytes(priorities));
  }

  void give_back(uint64_t lease) override {
    session_.send(GiveBack{Request::kGiveBack, 0, lease}, Deadline::max());
  }

  std::string waits() override { return session_.waits(); }

 private:
  // Sees to it that as many batches as wished are under way; whether there is one.
  bool ask(uint32_t wished, Deadline deadline) {
    while (num_asked_ < wished) {
      if (!session_.send(SampleMessage{}, deadline)) break;
      ++num_asked_;
    }
    return num_asked_ > 0;
  }

  Session session_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;
};

}  // namespace

std::unique_ptr<WriterPort> remote_writer(const SessionAddress& address, uint64_t next_sequence,
                                          uint32_t num_ahead) {
  return std::make_unique<RemoteWriter>(address, next_sequence, num_ahead);
}

std::unique_ptr<SamplerPort> remote_sampler(const SessionAddress& address, uint32_t num_ahead) {
  return std::make_unique<RemoteSampler>(address, num_ahead);
}

}  // namespace tengen::service
