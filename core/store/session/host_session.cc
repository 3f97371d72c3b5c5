#include "store/session/host_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "store/session/encoding.h"

namespace tengen::store {

using engine::Engine;

namespace {

// The maximum number of requests that are applied per session and round. A round ends earlier if
// the requests have touched kMaxSamples items.
constexpr int kMaxRequests = 64;

std::unique_ptr<ServedSession> served(engine::SessionId id, const SessionRecord& record,
                                      uint64_t num_wanted, uint64_t num_loans) {
  if (record.kind == SessionRecord::Kind::kWriter) return serve_writer(record.number, num_wanted);
  return serve_sampler(id, record.number, record.num_samples, num_wanted, num_loans);
}

}  // namespace

HostSession::HostSession(engine::SessionId id, SessionRecord record, const std::string& memory_path,
                         const engine::SessionProgress* progress, uint64_t num_loans)
    : id_(id),
      record_(std::move(record)),
      memory_(progress == nullptr
                  ? transport::SharedMemory::create(memory_path, record_.layout.num_bytes())
                  : transport::SharedMemory::adopt(memory_path, record_.layout.num_bytes())),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(record_.layout.requests(memory_.data())),
      replies_(record_.layout.replies(memory_.data())),
      served_(served(id, record_, progress == nullptr ? 0 : progress->num_wanted, num_loans)) {
  // Version 0 means that the memory is new, or that a server was killed while it created the
  // memory, so no client has mapped it.
  const uint32_t version = header_->version.load();
  check(version == kRingVersion || version == 0, "version", version,
        "must be this tengen's; use the one that made the store, or remove its folder");
  header_->version.store(kRingVersion);
  if (progress == nullptr) return;
  num_applied_ = progress->num_applied;
  requests_.resume_consumer(progress->request_tail);
  replies_.resume_producer(progress->reply_head);
}

HostSession::~HostSession() {
  if (is_left_) return;
  header_->is_over.store(1);
  ::unlink(memory_.path().c_str());
}

void HostSession::attach(int descriptor) { connection_ = transport::Connection(descriptor); }

Progress HostSession::serve(Engine& engine) {
  try {
    return serve_all(engine);
  } catch (...) {
    refuse(message_of(std::current_exception()));
    return Progress::kDone;
  }
}

Progress HostSession::serve_all(Engine& engine) {
  bool changed = false;
  int num_taken = 0;
  const uint64_t end = engine.num_touched() + engine::kMaxSamples;
  for (; num_taken < kMaxRequests && engine.num_touched() < end; ++num_taken) {
    const std::span<const std::byte> request = requests_.front();
    if (request.data() == nullptr) break;
    const Progress progress = served_->apply(engine, request);
    changed = changed || progress != Progress::kNone;
    if (progress != Progress::kDone) break;
    requests_.take();
  }
  num_applied_ += static_cast<uint64_t>(num_taken);
  if (is_waiting() && engine.num_touched() < end &&
      served_->answer(engine, *this) != Progress::kNone) {
    changed = true;
  }
  if (changed) {
    engine.note_progress(
        id_, {num_applied_, requests_.taken_tail(), replies_.staged_head(), served_->num_wanted()});
  }
  const std::string text = served_->waits(engine);
  if (!text.empty() || has_reason_) write_reason(text, header_);
  has_reason_ = !text.empty();
  return changed ? Progress::kDone : Progress::kNone;
}

void HostSession::publish(uint64_t number) {
  replies_.publish();
  requests_.release();
  if (number == 0) {
    header_->num_applied.store(num_applied_, std::memory_order_release);
  } else if (!promises_.empty() && promises_.back().number == number) {
    promises_.back().num_applied = num_applied_;
  } else {
    promises_.push_back({number, num_applied_});
  }
  if (is_refused_) {
    header_->is_over.store(1);
    shutdown(descriptor(), SHUT_RDWR);
  }
  wake(&header_->client_sleeps, descriptor());
}

void HostSession::publish_made(uint64_t number) {
  if (promises_.empty() || promises_.front().number > number) return;
  while (!promises_.empty() && promises_.front().number <= number) {
    header_->num_applied.store(promises_.front().num_applied, std::memory_order_release);
    promises_.pop_front();
  }
  wake(&header_->client_sleeps, descriptor());
}

void HostSession::break_promises(uint64_t number, const std::string& error) {
  if (promises_.empty() || promises_.front().number > number || is_refused_) return;
  refuse(error);
  publish(promises_.back().number);
}

void HostSession::read_bells() {
  char bytes[256];
  const ssize_t num_bytes = recv(descriptor(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (num_bytes == 0 || (num_bytes < 0 && errno != EAGAIN && errno != EINTR)) is_over_ = true;
}

void HostSession::refuse(const std::string& error) {
  const size_t num_bytes = std::min<size_t>(error.size(), replies_.max_message() / 2);
  const Text message{.num_bytes = static_cast<uint32_t>(sizeof message + num_bytes)};
  if (std::byte* const to = replies_.reserve(message.num_bytes)) {
    std::memcpy(put(to, message), error.data(), num_bytes);
    replies_.stage(message.num_bytes);
  }
  is_refused_ = true;
}

SessionLayout layout_of_sampler(const Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead) {
  // The ring of replies has twice the size of its messages, because no message may cross the ring's
  // end, and space for one more message, the last error.
  const uint64_t batch = max_batch_bytes(engine, table, num_samples);
  const uint64_t ack = sizeof(OfLease) + num_samples * sizeof(double) + sizeof(SampleMessage) + 64;
  const auto ring = [&](uint64_t each) {
    const uint64_t num_bytes = std::bit_ceil(std::max<uint64_t>(4096, 2 * (num_ahead + 2) * each));
    check(num_ahead <= 1024 && num_bytes <= (uint64_t{1} << 30), "num_ahead", num_ahead,
          "must be at most 1024, with the batches' indices below 1 GiB; lower it");
    return static_cast<uint32_t>(num_bytes);
  };
  return {ring(ack), ring(batch)};
}

SessionLayout layout_of_writer() { return {1 << 18, 1 << 16}; }

}  // namespace tengen::store
