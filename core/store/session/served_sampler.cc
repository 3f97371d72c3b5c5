#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/session/encoding.h"
#include "store/session/served_session.h"

namespace tengen::store {
namespace {

using engine::Engine;

// Serves a sampler. Requested batches may wait for the rate limiter, for steps from disk, or until
// the sampler returns other batches. Batches are sent in the order in which they were sampled.
class ServedSampler final : public ServedSession {
 public:
  ServedSampler(engine::SessionId id, uint32_t table, uint32_t num_samples, uint64_t num_wanted,
                uint64_t num_loans)
      : id_(id),
        table_(table),
        num_samples_(num_samples),
        num_undrawn_(num_wanted),
        num_lent_(num_loans) {}

  Progress apply(Engine& engine, std::span<const std::byte> message) override {
    switch (const Request kind = read<Request>(message)) {
      case Request::kSample:
        ++num_undrawn_;
        break;
      case Request::kAck: {
        const auto ack = read<OfLease>(message);
        take_all(message.subspan(sizeof ack), &priorities_);
        engine.ack(id_, ack.lease, priorities_);
        --num_lent_;
        break;
      }
      case Request::kGiveBack:
        engine.give_back(id_, read<OfLease>(message).lease);
        --num_lent_;
        break;
      default:
        refuse(kind);
    }
    return Progress::kDone;
  }

  Progress answer(Engine& engine, Outbox& outbox) override {
    has_changed_ = false;
    const uint64_t end = engine.num_touched() + engine::kMaxSamples;
    while (num_wanted() > 0 && engine.num_touched() < end) {
      std::byte* to = outbox.reserve(max_batch_bytes(engine, table_, num_samples_));
      if (to == nullptr || !next(engine, end)) break;
      ++num_lent_;
      outbox.stage(encode(to));
    }
    return has_changed_ ? Progress::kSome : Progress::kNone;
  }

  uint64_t num_wanted() const override { return num_undrawn_ + drawn_.size(); }

  std::string waits(const Engine& engine) const override {
    if (!drawn_.empty()) return "sample waits: its steps are being read from disk";
    if (num_undrawn_ > 0 && is_full(engine)) {
      if (num_lent_ == 0) return "sample waits: batches of other samplers are not acknowledged";
      return "sample waits: " + std::to_string(num_lent_) + " batches are not acknowledged";
    }
    return num_undrawn_ > 0 ? engine.sample_waits(table_, num_samples_) : "";
  }

 private:
  // Whether some sampler must return a batch before this sampler can sample the next one.
  bool is_full(const Engine& engine) const {
    return !engine.may_lend(table_, num_samples_, num_lent_ + drawn_.size());
  }

  // Samples requested batches until the next batch to send is in loan_, or the engine's count of
  // touched items reaches `end`. Returns false if that batch is not ready yet.
  bool next(Engine& engine, uint64_t end) {
    while (true) {
      while (num_undrawn_ > 0 && engine.num_touched() < end && !is_full(engine) &&
             engine.sample(id_, table_, num_samples_, &loan_)) {
        --num_undrawn_;
        has_changed_ = true;
        if (loan_.is_ready) return true;
        drawn_.push_back(std::exchange(loan_, {}));
      }
      if (drawn_.empty()) return false;
      loan_ = std::move(drawn_.front());
      drawn_.pop_front();
      const engine::Collected collected = engine.collect(&loan_);
      if (collected == engine::Collected::kNotYet) {
        drawn_.push_front(std::exchange(loan_, {}));
        return false;
      }
      has_changed_ = true;
      if (collected == engine::Collected::kReady) return true;
      ++num_undrawn_;  // the batch is lost, so sample another one
    }
  }

  // Writes the batch in loan_. Returns its size in bytes.
  uint32_t encode(std::byte* to) const {
    const uint64_t piece_bytes = loan_.pieces.size() * sizeof(engine::Piece);
    const uint64_t index_bytes = num_samples_ * (sizeof(int64_t) + sizeof(double));
    const Batch batch{.num_bytes = static_cast<uint32_t>(sizeof batch + index_bytes + piece_bytes),
                      .lease = loan_.lease,
                      .table_size = loan_.table_size,
                      .num_samples = num_samples_};
    to = put(to, batch);
    for (const engine::Sample& sample : loan_.samples) to = put(to, sample.key);
    for (const engine::Sample& sample : loan_.samples) to = put(to, sample.probability);
    std::memcpy(to, loan_.pieces.data(), piece_bytes);
    return batch.num_bytes;
  }

  const engine::SessionId id_;
  const uint32_t table_;
  const uint32_t num_samples_;
  uint64_t num_undrawn_;  // batches that were requested and not sampled yet
  uint64_t num_lent_;     // batches that were sent and neither acknowledged nor given back
  std::deque<engine::Loan> drawn_;  // sampled batches whose steps are being read from disk
  engine::Loan loan_;               // the last sampled batch
  bool has_changed_ = false;        // whether anything was sampled since answer() began
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<ServedSession> serve_sampler(engine::SessionId id, uint32_t table,
                                             uint32_t num_samples, uint64_t num_wanted,
                                             uint64_t num_loans) {
  return std::make_unique<ServedSampler>(id, table, num_samples, num_wanted, num_loans);
}

uint32_t max_batch_bytes(const Engine& engine, uint32_t table, uint32_t num_samples) {
  const engine::Schema& schema = engine.pool(engine.pool_of(table)).schema();
  const uint64_t num_steps = engine.table(table).config().num_steps;
  const uint64_t pieces = num_steps / schema.steps_per_chunk() + 2;
  const uint64_t num_bytes = sizeof(Batch) + num_samples * (16 + pieces * sizeof(engine::Piece));
  if (num_samples == 0 || num_bytes > (uint64_t{1} << 28)) {
    throw Error("batch (" + std::to_string(num_samples) +
                " samples) must have at least one, and an index below 256 MiB; request fewer "
                "samples");
  }
  return static_cast<uint32_t>(num_bytes);
}

}  // namespace tengen::store
