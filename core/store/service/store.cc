#include "store/service/store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "store/service/local_channel.h"

namespace tengen::store {
namespace {

using engine::Engine;

// The number of logs that would fill the memory for steps, so that a log is created quickly.
constexpr uint64_t kLogsInMemory = 64;
constexpr uint64_t kMinLogBytes = uint64_t{64} << 10;
constexpr uint64_t kMaxMemoryLogBytes = uint64_t{4} << 20;

// Begins a session, and ends it if `open` throws.
template <class Open>
engine::SessionId begin_for(Engine& engine, Open&& open) {
  const engine::SessionId id = engine.begin_session();
  try {
    open(id);
  } catch (...) {
    engine.end_session(id);
    throw;
  }
  return id;
}
}  // namespace

Store::Store(const std::string& directory, uint64_t memory_bytes, uint64_t seed,
             const DiskConfig& disk)
    : directory_(directory),
      disk_config_(disk),
      memory_(directory, memory_bytes),
      engine_(&memory_, seed,
              directory.empty() && disk.durability == Durability::kNone ? nullptr : &log_,
              make_disk()) {}

Store::~Store() {
  is_ending_ = true;
  // Stops the checkpointer and the tier first, because their threads call the other members.
  if (checkpointer_) checkpointer_->stop();
  if (tier_) tier_->stop();
}

engine::Disk* Store::make_disk() {
  const DiskConfig& disk = disk_config_;
  if (disk.num_bytes == 0) return nullptr;
  const bool has_checkpoints = disk.durability != Durability::kNone;
  const auto tell = [this](const engine::Transfer& transfer, bool is_load,
                           const engine::TransferResult& result) {
    tell_engine(transfer, is_load, result);
  };
  const auto regain = [this] {
    change_surely([] { return false; }, [](Engine& engine) { engine.regain_room(); });
  };
  // Hides the files if no later process can resume from them.
  tier_ = std::make_unique<DiskTier>(disk.directory, directory_.empty() && !has_checkpoints, tell,
                                     regain);
  disk_.emplace(tier_.get(), disk.num_bytes, has_checkpoints);
  return &*disk_;
}

Resumed Store::keep(bool goes_on) {
  const std::scoped_lock lock(mutex_);
  const bool has_checkpoints = disk_config_.durability != Durability::kNone;
  Resumed resumed;
  std::optional<engine::State> state;
  if (goes_on) state = Keeper::load(directory_);
  // Uses the last checkpoint, because a keeper that ran out of space has left no state.
  if (!state && has_checkpoints && (state = DurableLog::load(disk_config_.directory))) {
    std::vector<const engine::Schema*> schemas;
    for (uint32_t i = 0; i < engine_.num_pools(); ++i) schemas.push_back(&engine_.pool(i).schema());
    std::vector<uint32_t> num_promised;
    for (uint32_t i = 0; i < engine_.num_tables(); ++i) {
      num_promised.push_back(engine_.table(i).config().num_promised());
    }
    resumed.num_lost = state->lose_memory(schemas, num_promised);
  }
  if (state) {
    ++state->num_restarts;
    engine_.restore(*state);
    for (const auto& [id, session] : state->sessions) {
      if (session.description.empty()) {
        while (engine_.end_session(id)) {
        }
      } else {
        resumed.sessions.emplace(id, session);
      }
    }
  } else {
    state = begin_state();
  }
  if (!directory_.empty()) {
    keeper_ = std::make_unique<Keeper>(
        directory_, std::clamp(memory_bytes() / kLogsInMemory, kMinLogBytes, kMaxMemoryLogBytes),
        *state);
  }
  if (has_checkpoints) {
    checkpointer_ =
        std::make_unique<Checkpointer>(this, tier_.get(), disk_config_.directory, *state,
                                       disk_config_.durability, disk_config_.interval);
  }
  settle();
  return resumed;
}

// Returns the state of an engine with this store's pools and empty tables.
engine::State Store::begin_state() const {
  engine::Log tables;
  for (uint32_t i = 0; i < engine_.num_tables(); ++i) {
    tables.add(engine::event::TableAdded{i, engine_.pool_of(i)});
  }
  engine::State state;
  state.apply(tables.pending());
  return state;
}

std::string Store::trouble() {
  std::string of_rest = tier_ ? tier_->trouble() : "";
  const std::scoped_lock lock(mutex_);
  if (of_rest.empty()) of_rest = memory_.trouble();
  const std::string of_keeper = keeper_ ? keeper_->trouble() : "";
  const std::string of_checkpoints = checkpointer_ ? checkpointer_->trouble() : "";
  return !of_checkpoints.empty() ? of_checkpoints : of_keeper.empty() ? of_rest : of_keeper;
}

void Store::close() {
  {
    const std::scoped_lock lock(mutex_);
    if (is_finished_) return;
    // Closes the store first, so that no client learns of a change that the last checkpoint lacks.
    is_closed_ = true;
    const Changed changed(this);
  }
  if (checkpointer_) checkpointer_->finish();
  const std::scoped_lock lock(mutex_);
  is_finished_ = true;
}

void Store::tell_engine(const engine::Transfer& transfer, bool is_load,
                        const engine::TransferResult& result) noexcept {
  bool is_told = false;
  bool may_go_on = false;
  until_memory([&] {
    std::unique_lock lock(mutex_);
    if (!wait_for_memory(&lock, [] { return false; })) return;
    const Steady steady;
    // Wakes threads only if a caller can continue, usually after the last load of a batch.
    attempt_once([&](Engine& engine) {
      if (!std::exchange(is_told, true)) {
        const auto told = is_load ? &Engine::loaded : &Engine::saved;
        may_go_on = (engine.*told)(transfer.pool, transfer.chunk, result);
      }
      engine.advance(transfer.pool);
      return may_go_on ? Progress::kDone : Progress::kNone;
    });
  });
}

void Store::end_session(engine::SessionId id) noexcept {
  until_memory([&] { change_in_steps([&](Engine& engine) { return engine.end_session(id); }); });
}

bool Store::keep_rest() {
  const std::scoped_lock lock(mutex_);
  const auto is_any_left = [&] {
    return !log_.pending().empty() || (keeper_ && keeper_->is_behind());
  };
  if (!is_any_left()) return false;
  const Steady steady;
  settle();
  return is_any_left();
}

void Store::set_listener(std::function<void()> listener) {
  const std::scoped_lock lock(mutex_);
  listener_ = std::move(listener);
}

void Store::check_open() const {
  const std::string name = directory_.empty() ? "of this process" : directory_;
  if (is_closed_) throw Error("store (" + name + ") is closed; open it again");
  Steady::check_reserve();
}

Engine::OpenedWriter Store::begin_writer(const std::string& name, uint32_t pool,
                                         Deadline deadline) {
  engine::check_writer_name(name);  // before a session begins, which nobody would end
  Engine::OpenedWriter begun;
  const bool is_open = change_when(deadline, [&](Engine& engine) {
    if (engine.is_writer_open(name)) return Progress::kNone;
    begin_for(engine, [&](engine::SessionId id) { begun = engine.open_writer(id, name, pool); });
    return Progress::kDone;
  });
  check(is_open, "writer", name, engine::kNameIsTaken);
  return begun;
}

engine::SessionId Store::begin_sampler(uint32_t table, uint32_t num_samples) {
  return change_open([&](Engine& engine) {
    engine.check_batch(table, num_samples);
    return begin_for(engine, [&](engine::SessionId id) { engine.expect(id, table, num_samples); });
  });
}

WriterSession Store::open_writer(const std::string& name, uint32_t pool, Deadline deadline) {
  const Engine::OpenedWriter begun = begin_writer(name, pool, deadline);
  return {LocalChannel::open(this, begun.session, [&] { return serve_writer(begun.writer); }),
          begun.next_sequence, 1};
}

SamplerSession Store::open_sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead) {
  const engine::SessionId id = begin_sampler(table, num_samples);
  return {LocalChannel::open(this, id, [&] { return serve_sampler(id, table, num_samples); }),
          disk_ ? num_ahead : 0};
}

Store::Room Store::room() {
  const std::scoped_lock lock(mutex_);
  return {memory_.budget_bytes(), memory_.used_bytes(), disk_config_.num_bytes,
          disk_ ? disk_->used_bytes() : 0};
}

SlabMap Store::slab_map(uint32_t pool) {
  return read([&](const Engine& engine) {
    const engine::Pool& of = engine.pool(pool);
    return SlabMap(
        of.slots().slots_per_slab(), of.slots().slot_bytes(), [this, pool](uint32_t index) {
          return read([&](const Engine& now) { return now.pool(pool).slots().slab(index); });
        });
  });
}

}  // namespace tengen::store
