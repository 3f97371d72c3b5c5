#include "store/service/host_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "store/service/drawn_batches.h"

namespace tengen::store {

using engine::Engine;

namespace {

// The most requests of one session that are applied in one round.
constexpr int kMaxRequests = 64;

}  // namespace

HostSession::HostSession(engine::SessionId id, SessionRecord record, const std::string& memory_path,
                         const engine::SessionProgress* progress)
    : id_(id),
      record_(std::move(record)),
      memory_(progress == nullptr
                  ? transport::SharedMemory::create(memory_path, record_.layout.num_bytes())
                  : transport::SharedMemory::adopt(memory_path, record_.layout.num_bytes())),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(record_.layout.requests(memory_.data())),
      replies_(record_.layout.replies(memory_.data())) {
  header_->version.store(kProtocolVersion);
  if (progress == nullptr) return;
  num_applied_ = progress->num_applied;
  requests_.resume_consumer(progress->request_tail);
  replies_.resume_producer(progress->reply_head);
}

HostSession::~HostSession() {
  header_->is_over.store(1);
  ::unlink(memory_.path().c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

Progress HostSession::serve(Engine& engine) {
  try {
    return serve_all(engine);
  } catch (const Error& error) {
    refuse(error.what());
    return Progress::kDone;
  }
}

Progress HostSession::serve_all(Engine& engine) {
  bool changed = serve_waiting(engine) != Progress::kNone;
  bool blocked = false;
  int num_taken = 0;
  for (; num_taken < kMaxRequests && !blocked; ++num_taken) {
    const std::span<const std::byte> request = requests_.front();
    if (request.data() == nullptr) break;
    const Progress progress = apply(engine, request);
    blocked = progress != Progress::kDone;
    changed = changed || progress != Progress::kNone;
    if (blocked) break;
    requests_.take();
  }
  num_applied_ += static_cast<uint64_t>(num_taken);
  if (changed || num_taken > 0) {
    engine.note_progress(
        id_, {num_applied_, requests_.taken_tail(), replies_.staged_head(), num_wanted()});
  }
  const std::string text = reason(engine);
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
    shutdown(descriptor_, SHUT_RDWR);
  }
  wake(&header_->client_sleeps, descriptor_);
}

void HostSession::publish_made(uint64_t number) {
  if (promises_.empty() || promises_.front().number > number) return;
  while (!promises_.empty() && promises_.front().number <= number) {
    header_->num_applied.store(promises_.front().num_applied, std::memory_order_release);
    promises_.pop_front();
  }
  wake(&header_->client_sleeps, descriptor_);
}

void HostSession::break_promises(const std::string& error) {
  if (promises_.empty() || is_refused_) return;
  refuse(error);
  publish(promises_.back().number);
}

void HostSession::read_bells() {
  char bytes[256];
  const ssize_t num_bytes = recv(descriptor_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (num_bytes == 0 || (num_bytes < 0 && errno != EAGAIN && errno != EINTR)) is_over_ = true;
}

void HostSession::refuse(const std::string& error) {
  const size_t num_bytes = std::min<size_t>(error.size(), replies_.max_message() / 2);
  std::byte* to = replies_.reserve(static_cast<uint32_t>(sizeof(ErrorReply) + num_bytes));
  if (to != nullptr) {
    to = put(to, ErrorReply{Reply::kError, static_cast<uint32_t>(num_bytes)});
    std::memcpy(to, error.data(), num_bytes);
    replies_.stage(static_cast<uint32_t>(sizeof(ErrorReply) + num_bytes));
  }
  is_refused_ = true;
}

namespace {

Request kind_of(std::span<const std::byte> request) { return read<Request>(request); }

[[noreturn]] void refuse_kind(Request kind) {
  throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
              ") must be one of this session's; the client is of another version");
}

class HostWriter final : public HostSession {
 public:
  HostWriter(engine::SessionId id, const SessionRecord& of, const std::string& memory_path,
             const engine::SessionProgress* progress)
      : HostSession(id, of, memory_path, progress),
        writer_(of.number),
        num_wanted_(progress == nullptr ? 0 : static_cast<uint32_t>(progress->num_wanted)) {}

 protected:
  Progress serve_waiting(Engine& engine) override {
    if (num_wanted_ == 0) return Progress::kNone;
    std::byte* to = replies().reserve(sizeof(Slots) + kMaxWanted * sizeof(uint32_t));
    if (to == nullptr) return Progress::kNone;
    // The slots granted ahead to one writer are a small part of the memory that all share, but at
    // least one.
    const uint64_t share = engine.pool(engine.pool_of_writer(writer_)).slots().max_slots() / 64;
    const uint64_t stock = engine.num_granted(writer_);
    const uint64_t most = std::min<uint64_t>(num_wanted_, share > stock ? share - stock : 1);
    granted_.clear();
    const uint64_t removed_before = engine.num_removed();
    while (granted_.size() < most && engine.num_removed() - removed_before < engine::kMaxAtOnce) {
      const std::optional<uint32_t> slot = engine.grant(writer_);
      if (!slot) break;
      granted_.push_back(*slot);
    }
    if (granted_.empty()) return engine.is_making_room(writer_) ? Progress::kSome : Progress::kNone;
    const uint32_t count = static_cast<uint32_t>(granted_.size());
    to = put(to, Slots{Reply::kSlots, count});
    std::memcpy(to, granted_.data(), count * sizeof(uint32_t));
    replies().stage(static_cast<uint32_t>(sizeof(Slots) + count * sizeof(uint32_t)));
    num_wanted_ = 0;
    return Progress::kSome;
  }

  Progress apply(Engine& engine, std::span<const std::byte> request) override {
    switch (kind_of(request)) {
      case Request::kTakeSlots:
        num_wanted_ = std::min(read<TakeSlots>(request).count, kMaxWanted);
        serve_waiting(engine);
        return Progress::kDone;
      case Request::kAppend:
        engine.append(writer_, read<Append>(request).slot);
        return Progress::kDone;
      case Request::kInsert:
        return insert(engine, request);
      case Request::kRelease:
        engine.release_before(writer_, read<Release>(request).first);
        return Progress::kDone;
      default:
        refuse_kind(kind_of(request));
    }
  }

  uint64_t num_wanted() const override { return num_wanted_; }

  std::string reason(const Engine& engine) const override {
    if (blocked_by_) return engine.insert_waits(*blocked_by_);
    return num_wanted_ > 0 ? engine.grant_waits(writer_) : "";
  }

 private:
  Progress insert(Engine& engine, std::span<const std::byte> request) {
    const auto message = read<InsertMessage>(request);
    if (message.num_priorities != 1 && message.num_priorities != message.count) {
      throw Error("priorities (" + std::to_string(message.num_priorities) +
                  ") must be one, or one an item; send as many as items");
    }
    take(request.subspan(sizeof message), message.num_priorities, &priorities_);
    const InsertRun run{message.table, message.version, message.sequence,  message.first,
                        message.count, message.stride,  message.num_steps, priorities_};
    const Progress progress = insert_run(engine, writer_, run, &num_inserted_);
    blocked_by_.reset();
    if (progress == Progress::kDone) {
      num_inserted_ = 0;
    } else {
      blocked_by_ = message.table;
    }
    return progress;
  }

  static constexpr uint32_t kMaxWanted = 1024;
  const uint32_t writer_;
  uint32_t num_wanted_;        // slots that the client asked for; any number above 0 is an answer
  uint32_t num_inserted_ = 0;  // of the run at the front
  std::optional<uint32_t> blocked_by_;
  std::vector<uint32_t> granted_;
  std::vector<double> priorities_;
};

class HostSampler final : public HostSession {
 public:
  HostSampler(engine::SessionId id, const SessionRecord& of, const std::string& memory_path,
              const engine::SessionProgress* progress, uint64_t num_loans)
      : HostSession(id, of, memory_path, progress),
        table_(of.number),
        num_samples_(of.num_samples),
        batches_(id, table_, num_samples_, progress == nullptr ? 0 : progress->num_wanted,
                 num_loans) {}

 protected:
  Progress serve_waiting(Engine& engine) override {
    while (batches_.num_asked() > 0 && send_batch(engine)) {
    }
    return batches_.take_changed() ? Progress::kSome : Progress::kNone;
  }

  Progress apply(Engine& engine, std::span<const std::byte> request) override {
    switch (kind_of(request)) {
      case Request::kSample:
        batches_.ask();
        serve_waiting(engine);
        return Progress::kDone;
      case Request::kAck: {
        const auto message = read<Ack>(request);
        take(request.subspan(sizeof message), message.num_priorities, &priorities_);
        engine.ack(id(), message.lease, priorities_);
        batches_.take_back();
        return Progress::kDone;
      }
      case Request::kGiveBack:
        engine.give_back(id(), read<GiveBack>(request).lease);
        batches_.take_back();
        return Progress::kDone;
      case Request::kKeep:
        engine.keep(id(), read<Keep>(request).lease);
        return Progress::kDone;
      case Request::kLetGo:
        engine.let_go(id(), read<LetGo>(request).lease);
        return Progress::kDone;
      default:
        refuse_kind(kind_of(request));
    }
  }

  uint64_t num_wanted() const override { return batches_.num_asked(); }

  std::string reason(const Engine& engine) const override { return batches_.waits(engine); }

 private:
  bool send_batch(Engine& engine) {
    const uint32_t max_bytes = max_batch_bytes(engine, table_, num_samples_);
    std::byte* to = replies().reserve(max_bytes);
    const engine::Loan* loan = to == nullptr ? nullptr : batches_.next(engine);
    if (loan == nullptr) return false;
    const std::byte* begin = to;
    const uint32_t num_pieces = static_cast<uint32_t>(loan->pieces.size());
    to = put(to, Batch{Reply::kBatch, num_samples_, loan->lease, loan->table_size, num_pieces, 0});
    for (const engine::Sample& sample : loan->samples) to = put(to, sample.key);
    for (const engine::Sample& sample : loan->samples) to = put(to, sample.probability);
    std::memcpy(to, loan->pieces.data(), num_pieces * sizeof(engine::Piece));
    to += num_pieces * sizeof(engine::Piece);
    replies().stage(static_cast<uint32_t>(to - begin));
    return true;
  }

 public:
  static uint32_t max_batch_bytes(const Engine& engine, uint32_t table, uint32_t num_samples) {
    const engine::Schema& schema = engine.pool(engine.pool_of(table)).schema();
    const uint64_t num_steps =
        uint64_t{schema.num_context()} + engine.table(table).config().num_steps;
    // Where a stream's first step stands in for earlier ones, it is one piece for each of them.
    const uint64_t pieces = schema.num_context() + num_steps / schema.steps_per_chunk() + 2;
    const uint64_t num_bytes = sizeof(Batch) + num_samples * (16 + pieces * sizeof(engine::Piece));
    if (num_samples == 0 || num_bytes > (uint64_t{1} << 28)) {
      throw Error("batch (" + std::to_string(num_samples) +
                  " samples) must be of at least one, and its index below 256 MiB; take less at "
                  "a time");
    }
    return static_cast<uint32_t>(num_bytes);
  }

 private:
  const uint32_t table_;
  const uint32_t num_samples_;
  DrawnBatches batches_;
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<HostSession> host_session(engine::SessionId id, const SessionRecord& record,
                                          const std::string& memory_path,
                                          const engine::SessionProgress* progress,
                                          uint64_t num_loans) {
  if (record.kind == SessionRecord::Kind::kWriter) {
    return std::make_unique<HostWriter>(id, record, memory_path, progress);
  }
  return std::make_unique<HostSampler>(id, record, memory_path, progress, num_loans);
}

SessionLayout layout_of_sampler(const Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead) {
  // The ring has twice that size, as no message lies across its end, and room for one more, the
  // last error.
  const uint64_t batch = HostSampler::max_batch_bytes(engine, table, num_samples);
  const uint64_t ack = sizeof(Ack) + num_samples * sizeof(double) + sizeof(SampleMessage) + 64;
  const auto ring = [&](uint64_t each) {
    const uint64_t num_bytes = std::bit_ceil(std::max<uint64_t>(4096, 2 * (num_ahead + 2) * each));
    if (num_ahead > 1024 || num_bytes > (uint64_t{1} << 30)) {
      throw Error("num_ahead (" + std::to_string(num_ahead) +
                  ") must be at most 1024, and so many batches' indices below 1 GiB; lower it");
    }
    return static_cast<uint32_t>(num_bytes);
  };
  return {ring(ack), ring(batch)};
}

SessionLayout layout_of_writer() { return {1 << 18, 1 << 16}; }

}  // namespace tengen::store
