#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "store/session/encoding.h"
#include "store/session/served_session.h"

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
    // Grants a writer at least one slot, and in advance only a small share of the memory. All
    // writers together get at most a quarter of the memory in advance. Otherwise a later writer
    // would get no slot while the others continue.
    const uint64_t num_parts = std::max<uint64_t>(64, 4 * engine.num_writers());
    const uint64_t num_slots = engine.pool(engine.pool_of_writer(writer_)).slots().max_slots();
    const uint64_t share = num_slots / num_parts;
    const uint64_t stock = engine.num_granted(writer_);
    const uint64_t most = std::min<uint64_t>(num_wanted_, share > stock ? share - stock : 1);
    granted_.clear();
    const uint64_t removed_before = engine.num_removed();
    const uint64_t end = engine.num_touched() + engine::kMaxSamples;
    while (granted_.size() < most && engine.num_touched() < end &&
           engine.num_removed() - removed_before < engine::kMaxAtOnce) {
      const std::optional<uint32_t> slot = engine.grant(writer_);
      if (!slot) break;
      granted_.push_back(*slot);
    }
    if (granted_.empty()) return engine.is_making_room(writer_) ? Progress::kSome : Progress::kNone;
    const size_t slot_bytes = granted_.size() * sizeof(uint32_t);
    const Slots reply{.num_bytes = static_cast<uint32_t>(sizeof reply + slot_bytes)};
    std::memcpy(put(to, reply), granted_.data(), slot_bytes);
    outbox.stage(reply.num_bytes);
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
    // Checks this first, because a blocked insert may be long and is retried after every change.
    const bool is_same = blocked_by_ == message.table && message.sequence == sequence_;
    if (is_same && engine.table(message.table).inserts_allowed(1) == 0) return Progress::kNone;
    blocked_by_.reset();
    const uint32_t count = message.count;
    take_all(bytes.subspan(sizeof message), &priorities_);
    const size_t num_priorities = priorities_.size();
    if (count == 0 || count > kMaxItems || (num_priorities != 1 && num_priorities != count)) {
      throw Error("insert (" + std::to_string(count) + " items, " + std::to_string(num_priorities) +
                  " priorities) must have one priority in total or one per item; send either");
    }
    // Resumes a message that was applied only partly. It also stops after it has touched many
    // chunks, so that other sessions are served.
    if (message.sequence != sequence_) num_inserted_ = 0;
    sequence_ = message.sequence;
    const uint64_t before = engine.num_touched();
    while (num_inserted_ < count) {
      if (engine.num_touched() - before >= engine::kMaxSamples) return Progress::kSome;
      const uint32_t i = num_inserted_;
      const auto result =
          engine.insert(writer_, {message.table, message.sequence + i,
                                  message.first + uint64_t{i} * message.stride, message.num_steps,
                                  priorities_[num_priorities == 1 ? 0 : i]});
      if (result == engine::InsertResult::kBlocked) {
        blocked_by_ = message.table;
        return engine.num_touched() > before ? Progress::kSome : Progress::kNone;
      }
      if (result != engine::InsertResult::kMakingRoom) ++num_inserted_;
    }
    num_inserted_ = 0;
    return Progress::kDone;
  }

  static constexpr uint32_t kMaxWanted = 1024;
  const uint32_t writer_;
  uint32_t num_wanted_;    // slots that were requested; a reply may grant fewer, but at least one
  uint64_t sequence_ = 0;  // sequence number of the last insert that was tried
  uint32_t num_inserted_ = 0;  // number of items of that insert that were inserted so far
  std::optional<uint32_t> blocked_by_;
  std::vector<uint32_t> granted_;
  std::vector<double> priorities_;
};

}  // namespace

std::unique_ptr<ServedSession> serve_writer(uint32_t writer, uint64_t num_wanted) {
  return std::make_unique<ServedWriter>(writer, num_wanted);
}

}  // namespace tengen::store
