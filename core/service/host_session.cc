#include "service/host_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace tengen::service {

using replay::Engine;

namespace {

// Requests of one session in one go.
constexpr int kMaxRequests = 64;

}  // namespace

HostSession::HostSession(int descriptor, replay::SessionId id, std::string name,
                         const std::string& memory_path, const SessionLayout& layout)
    : descriptor_(descriptor),
      id_(id),
      name_(std::move(name)),
      memory_(ipc::SharedMemory::create(memory_path, layout.num_bytes())),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(layout.requests(memory_.data())),
      replies_(layout.replies(memory_.data())) {
  header_->version.store(kProtocolVersion);
}

HostSession::~HostSession() {
  ::unlink(memory_.path().c_str());
  ::close(descriptor_);
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
    requests_.pop();
  }
  if (num_taken > 0) {
    num_applied_ += static_cast<uint64_t>(num_taken);
    header_->num_applied.store(num_applied_, std::memory_order_release);
  }
  const std::string text = reason(engine);
  if (!text.empty() || has_reason_) write_reason(text, header_);
  has_reason_ = !text.empty();
  return changed ? Progress::kDone : Progress::kNone;
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
    replies_.commit(static_cast<uint32_t>(sizeof(ErrorReply) + num_bytes));
  }
  shutdown(descriptor_, SHUT_RDWR);
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
  template <class... Args>
  HostWriter(uint32_t writer, Args&&... args)
      : HostSession(std::forward<Args>(args)...), writer_(writer) {}

 protected:
  Progress serve_waiting(Engine& engine) override {
    if (num_wanted_ == 0) return Progress::kNone;
    std::byte* to = replies().reserve(sizeof(Slots) + kMaxWanted * sizeof(uint32_t));
    if (to == nullptr) return Progress::kNone;
    // One writer's stock is a small part of the memory that all share.
    const uint64_t share = engine.pool(engine.pool_of_writer(writer_)).max_slots() / 64;
    const uint64_t most = std::min<uint64_t>(num_wanted_, std::max<uint64_t>(1, share));
    granted_.clear();
    while (granted_.size() < most) {
      const std::optional<uint32_t> slot = engine.grant(writer_);
      if (!slot) break;
      granted_.push_back(*slot);
    }
    if (granted_.empty()) return Progress::kNone;
    const uint32_t count = static_cast<uint32_t>(granted_.size());
    to = put(to, Slots{Reply::kSlots, count});
    std::memcpy(to, granted_.data(), count * sizeof(uint32_t));
    replies().commit(static_cast<uint32_t>(sizeof(Slots) + count * sizeof(uint32_t)));
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

  std::string reason(const Engine& engine) const override {
    if (blocked_by_) return engine.insert_waits(*blocked_by_);
    if (num_wanted_ > 0) return "writer waits: memory is held by writers and batches on loan";
    return "";
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
  uint32_t num_wanted_ = 0;    // slots that are asked for; any number above 0 is an answer
  uint32_t num_inserted_ = 0;  // of the run at the front
  std::optional<uint32_t> blocked_by_;
  std::vector<uint32_t> granted_;
  std::vector<double> priorities_;
};

class HostSampler final : public HostSession {
 public:
  template <class... Args>
  HostSampler(uint32_t table, uint32_t num_samples, Args&&... args)
      : HostSession(std::forward<Args>(args)...), table_(table), num_samples_(num_samples) {}

 protected:
  Progress serve_waiting(Engine& engine) override {
    Progress progress = Progress::kNone;
    while (num_wanted_ > 0 && send_batch(engine)) {
      --num_wanted_;
      progress = Progress::kSome;
    }
    return progress;
  }

  Progress apply(Engine& engine, std::span<const std::byte> request) override {
    switch (kind_of(request)) {
      case Request::kSample:
        ++num_wanted_;
        serve_waiting(engine);
        return Progress::kDone;
      case Request::kAck: {
        const auto message = read<Ack>(request);
        take(request.subspan(sizeof message), message.num_priorities, &priorities_);
        engine.ack(id(), message.lease, priorities_);
        return Progress::kDone;
      }
      case Request::kGiveBack:
        engine.give_back(id(), read<GiveBack>(request).lease);
        return Progress::kDone;
      default:
        refuse_kind(kind_of(request));
    }
  }

  std::string reason(const Engine& engine) const override {
    return num_wanted_ > 0 ? engine.sample_waits(table_, num_samples_) : "";
  }

 private:
  bool send_batch(Engine& engine) {
    const uint32_t max_bytes = max_batch_bytes(engine, table_, num_samples_);
    std::byte* to = replies().reserve(max_bytes);
    if (to == nullptr || !engine.sample(id(), table_, num_samples_, &loan_)) return false;
    const std::byte* begin = to;
    const uint32_t num_pieces = static_cast<uint32_t>(loan_.pieces.size());
    to = put(to, Batch{Reply::kBatch, num_samples_, loan_.lease, loan_.table_size, num_pieces, 0});
    for (const replay::Sample& sample : loan_.samples) to = put(to, sample.key);
    for (const replay::Sample& sample : loan_.samples) to = put(to, sample.probability);
    std::memcpy(to, loan_.pieces.data(), num_pieces * sizeof(replay::Piece));
    to += num_pieces * sizeof(replay::Piece);
    replies().commit(static_cast<uint32_t>(to - begin));
    return true;
  }

 public:
  static uint32_t max_batch_bytes(const Engine& engine, uint32_t table, uint32_t num_samples) {
    const uint32_t steps_per_chunk = engine.pool(engine.pool_of(table)).schema().steps_per_chunk();
    const uint64_t pieces = engine.table(table).config().num_steps / steps_per_chunk + 2;
    const uint64_t num_bytes = sizeof(Batch) + num_samples * (16 + pieces * sizeof(replay::Piece));
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
  uint32_t num_wanted_ = 0;  // batches that are asked for and not drawn
  replay::Loan loan_;
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<HostSession> host_writer(int descriptor, replay::SessionId id,
                                         const std::string& name, const std::string& memory_path,
                                         const SessionLayout& layout, uint32_t writer) {
  return std::make_unique<HostWriter>(writer, descriptor, id, name, memory_path, layout);
}

std::unique_ptr<HostSession> host_sampler(int descriptor, replay::SessionId id,
                                          const std::string& name, const std::string& memory_path,
                                          const SessionLayout& layout, uint32_t table,
                                          uint32_t num_samples) {
  return std::make_unique<HostSampler>(table, num_samples, descriptor, id, name, memory_path,
                                       layout);
}

SessionLayout layout_of_sampler(const Engine& engine, uint32_t table, uint32_t num_samples,
                                uint32_t num_ahead) {
  // A ring holds twice as many, as none lies across its end, and one more for a last word.
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

}  // namespace tengen::service
