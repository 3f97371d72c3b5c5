#include "store/service/served_session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "store/service/drawn_batches.h"
#include "store/service/encoding.h"

namespace tengen::store {
namespace {

using engine::Engine;

class ServedWriter final : public ServedSession {
 public:
  ServedWriter(uint32_t writer, uint64_t num_wanted)
      : writer_(writer), num_wanted_(static_cast<uint32_t>(num_wanted)) {}

  Progress apply(Engine& engine, std::span<const std::byte> message) override {
    switch (const Request kind = read<Request>(message)) {
      case Request::kTakeSlots:
        num_wanted_ = std::min(read<TakeSlots>(message).count, kMaxWanted);
        return Progress::kDone;
      case Request::kAppend:
        engine.append(writer_, read<Append>(message).slot);
        return Progress::kDone;
      case Request::kInsert:
        return insert(engine, message);
      case Request::kRelease:
        engine.release_before(writer_, read<Release>(message).first);
        return Progress::kDone;
      default:
        refuse(kind);
    }
  }

  Progress answer(Engine& engine, Outbox& outbox) override {
    if (num_wanted_ == 0) return Progress::kNone;
    std::byte* to = outbox.reserve(sizeof(Slots) + kMaxWanted * sizeof(uint32_t));
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
    outbox.stage(static_cast<uint32_t>(sizeof(Slots) + count * sizeof(uint32_t)));
    num_wanted_ = 0;
    return Progress::kSome;
  }

  uint64_t num_wanted() const override { return num_wanted_; }

  std::string waits(const Engine& engine) const override {
    if (blocked_by_) return engine.insert_waits(*blocked_by_);
    return num_wanted_ > 0 ? engine.grant_waits(writer_) : "";
  }

 private:
  Progress insert(Engine& engine, std::span<const std::byte> bytes) {
    const auto message = read<InsertMessage>(bytes);
    const uint32_t count = message.count;
    const uint32_t num_priorities = message.num_priorities;
    if (count == 0 || count > kMaxItems || (num_priorities != 1 && num_priorities != count)) {
      throw Error("insert (" + std::to_string(count) + " items, " + std::to_string(num_priorities) +
                  " priorities) must have a priority for all or for each; send as many as items");
    }
    take(bytes.subspan(sizeof message), num_priorities, &priorities_);
    // A message that could not be applied whole goes on where it stopped.
    if (message.sequence != sequence_) num_inserted_ = 0;
    sequence_ = message.sequence;
    const uint32_t before = num_inserted_;
    for (; num_inserted_ < count; ++num_inserted_) {
      const uint32_t i = num_inserted_;
      const auto result =
          engine.insert(writer_, {message.table, message.sequence + i,
                                  message.first + uint64_t{i} * message.stride, message.num_steps,
                                  priorities_[num_priorities == 1 ? 0 : i], message.version});
      if (result == engine::InsertResult::kBlocked) {
        blocked_by_ = message.table;
        return num_inserted_ > before ? Progress::kSome : Progress::kNone;
      }
    }
    blocked_by_.reset();
    num_inserted_ = 0;
    return Progress::kDone;
  }

  static constexpr uint32_t kMaxWanted = 1024;
  const uint32_t writer_;
  uint32_t num_wanted_;        // slots that were asked for; any number above 0 is an answer
  uint64_t sequence_ = 0;      // of the insert that was tried last
  uint32_t num_inserted_ = 0;  // of its items
  std::optional<uint32_t> blocked_by_;
  std::vector<uint32_t> granted_;
  std::vector<double> priorities_;
};

class ServedSampler final : public ServedSession {
 public:
  ServedSampler(engine::SessionId id, uint32_t table, uint32_t num_samples, uint64_t num_wanted,
                uint64_t num_loans)
      : id_(id),
        table_(table),
        num_samples_(num_samples),
        batches_(id, table, num_samples, num_wanted, num_loans) {}

  Progress apply(Engine& engine, std::span<const std::byte> message) override {
    switch (const Request kind = read<Request>(message)) {
      case Request::kSample:
        batches_.ask();
        return Progress::kDone;
      case Request::kAck: {
        const auto ack = read<Ack>(message);
        take(message.subspan(sizeof ack), ack.num_priorities, &priorities_);
        engine.ack(id_, ack.lease, priorities_);
        batches_.take_back();
        return Progress::kDone;
      }
      case Request::kGiveBack:
        engine.give_back(id_, read<GiveBack>(message).lease);
        batches_.take_back();
        return Progress::kDone;
      case Request::kKeep:
        engine.keep(id_, read<Keep>(message).lease);
        return Progress::kDone;
      case Request::kLetGo:
        engine.let_go(id_, read<LetGo>(message).lease);
        return Progress::kDone;
      default:
        refuse(kind);
    }
  }

  Progress answer(Engine& engine, Outbox& outbox) override {
    while (batches_.num_asked() > 0 && send_batch(engine, outbox)) {
    }
    return batches_.take_changed() ? Progress::kSome : Progress::kNone;
  }

  uint64_t num_wanted() const override { return batches_.num_asked(); }

  std::string waits(const Engine& engine) const override { return batches_.waits(engine); }

 private:
  bool send_batch(Engine& engine, Outbox& outbox) {
    std::byte* to = outbox.reserve(max_batch_bytes(engine, table_, num_samples_));
    const engine::Loan* loan = to == nullptr ? nullptr : batches_.next(engine);
    if (loan == nullptr) return false;
    const std::byte* begin = to;
    const uint32_t num_pieces = static_cast<uint32_t>(loan->pieces.size());
    to = put(to, Batch{Reply::kBatch, num_samples_, loan->lease, loan->table_size, num_pieces, 0});
    for (const engine::Sample& sample : loan->samples) to = put(to, sample.key);
    for (const engine::Sample& sample : loan->samples) to = put(to, sample.probability);
    std::memcpy(to, loan->pieces.data(), num_pieces * sizeof(engine::Piece));
    to += num_pieces * sizeof(engine::Piece);
    outbox.stage(static_cast<uint32_t>(to - begin));
    return true;
  }

  const engine::SessionId id_;
  const uint32_t table_;
  const uint32_t num_samples_;
  DrawnBatches batches_;
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<ServedSession> serve_writer(uint32_t writer, uint64_t num_wanted) {
  return std::make_unique<ServedWriter>(writer, num_wanted);
}

std::unique_ptr<ServedSession> serve_sampler(engine::SessionId id, uint32_t table,
                                             uint32_t num_samples, uint64_t num_wanted,
                                             uint64_t num_loans) {
  return std::make_unique<ServedSampler>(id, table, num_samples, num_wanted, num_loans);
}

uint32_t max_batch_bytes(const Engine& engine, uint32_t table, uint32_t num_samples) {
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

}  // namespace tengen::store
