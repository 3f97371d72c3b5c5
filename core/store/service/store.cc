#include "store/service/store.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/error.h"
#include "store/service/drawn_batches.h"

namespace tengen::store {
namespace {

using engine::Engine;

// The size of one log: a fraction of the memory for steps, that can be made in a moment.
constexpr uint64_t kLogsInMemory = 64;
constexpr uint64_t kMinLogBytes = uint64_t{64} << 10;
constexpr uint64_t kMaxMemoryLogBytes = uint64_t{4} << 20;

class LocalWriter final : public WriterPort {
 public:
  LocalWriter(Store* store, const std::string& name, uint32_t pool, Deadline deadline)
      : store_(store) {
    if (!store->change_when(deadline, [&](Engine& engine) {
          if (engine.is_writer_open(name)) return Progress::kNone;
          session_ = engine.begin_session();
          opened_ = engine.open_writer(session_, name, pool);
          return Progress::kDone;
        })) {
      throw Error("writer (" + name + ") is open in another client; give each a name of its own");
    }
  }
  ~LocalWriter() override {
    store_->change_in_steps([&](Engine& engine) { return engine.end_session(session_); });
  }

  uint64_t next_sequence() const override { return opened_.next_sequence; }

  std::optional<uint32_t> begin_chunk(Deadline deadline) override {
    std::optional<uint32_t> slot;
    store_->change_when(deadline, [&](Engine& engine) {
      slot = engine.grant(opened_.writer);
      has_slot_ = slot.has_value();
      if (!slot) return engine.is_making_room(opened_.writer) ? Progress::kSome : Progress::kNone;
      engine.append(opened_.writer, *slot);
      return Progress::kDone;
    });
    return slot;
  }

  bool insert(const InsertRun& run, Deadline deadline) override {
    uint32_t done = 0;
    table_ = run.table;
    bool has_excess = false;
    const bool is_done = store_->change_when(deadline, [&](Engine& engine) {
      const Progress progress = insert_run(engine, opened_.writer, run, &done);
      has_excess = engine.has_excess();
      return progress;
    });
    if (has_excess) {
      store_->change_in_steps([](Engine& engine) { return engine.remove_excess(); });
    }
    Checkpointer* const checkpointer = store_->checkpointer();
    if (done > 0 && checkpointer != nullptr && checkpointer->is_sync()) {
      inserts_end_ = checkpointer->ask();
    }
    return is_done;
  }

  void release_before(uint64_t first) override {
    store_->change([&](Engine& engine) { engine.release_before(opened_.writer, first); });
  }

  bool flush(Deadline deadline) override {
    Checkpointer* const checkpointer = store_->checkpointer();
    if (checkpointer == nullptr || !checkpointer->is_sync() || inserts_end_ == 0) return true;
    return checkpointer->wait(inserts_end_, deadline);
  }

  std::string waits() override {
    return store_->read([&](const Engine& engine) {
      return has_slot_ ? engine.insert_waits(table_) : engine.grant_waits(opened_.writer);
    });
  }

 private:
  Store* const store_;
  engine::SessionId session_ = 0;
  Engine::OpenedWriter opened_{};
  uint64_t inserts_end_ = 0;  // the checkpoint that has them
  uint32_t table_ = 0;        // table of the last insert
  bool has_slot_ = true;      // where false, the next chunk waits for memory
};

class LocalSampler final : public SamplerPort {
 public:
  LocalSampler(Store* store, uint32_t table, uint32_t num_samples, uint32_t num_ahead)
      : store_(store),
        num_ahead_(num_ahead),
        session_(store->change([&](Engine& engine) {
          engine.expect(table, num_samples);
          return engine.begin_session();
        })),
        batches_(session_, table, num_samples) {}
  ~LocalSampler() override {
    store_->change_in_steps([&](Engine& engine) { return engine.end_session(session_); });
  }

  bool next(Deadline deadline, Delivery* delivery) override {
    const engine::Loan* loan = nullptr;
    std::exception_ptr lost;
    const auto attempt = [&](Engine& engine) {
      while (batches_.num_asked() <= num_ahead_) batches_.ask();
      try {
        loan = batches_.next(engine);
      } catch (const Error&) {
        lost = std::current_exception();  // passed on, as other threads must be woken first
      }
      const bool has_changed = batches_.take_changed();
      if (loan != nullptr || lost) return Progress::kDone;
      return has_changed ? Progress::kSome : Progress::kNone;
    };
    if (!store_->change_when(deadline, attempt)) return false;
    if (lost) std::rethrow_exception(lost);
    deliver(*loan, delivery);
    return true;
  }

  void ack(uint64_t lease, std::span<const double> priorities) override {
    store_->change_open([&](Engine& engine) {
      engine.ack(session_, lease, priorities);
      batches_.take_back();
    });
  }

  void give_back(uint64_t lease) override {
    store_->change([&](Engine& engine) {
      engine.give_back(session_, lease);
      batches_.take_back();
    });
  }

  void keep(uint64_t lease) override {
    store_->change([&](Engine& engine) { engine.keep(session_, lease); });
  }

  void let_go(uint64_t lease) override {
    store_->change([&](Engine& engine) { engine.let_go(session_, lease); });
  }

  std::string waits() override {
    return store_->read([&](const Engine& engine) { return batches_.waits(engine); });
  }

 private:
  Store* const store_;
  const uint32_t num_ahead_;
  const engine::SessionId session_;
  DrawnBatches batches_;
};

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
  // First, as their threads call the other members.
  if (checkpointer_) checkpointer_->stop();
  if (tier_) tier_->stop();
}

engine::Disk* Store::make_disk() {
  const DiskConfig& disk = disk_config_;
  if (disk.num_bytes == 0) return nullptr;
  const bool has_checkpoints = disk.durability != Durability::kNone;
  const auto tell = [this](const engine::Transfer& transfer, bool is_load,
                           const engine::TransferResult& result) {
    // Mostly only the last load of a batch is worth waking anybody.
    try_change([&](Engine& engine) {
      const auto told = is_load ? &Engine::loaded : &Engine::saved;
      const bool may_go_on = (engine.*told)(transfer.pool, transfer.chunk, result);
      return may_go_on ? Progress::kDone : Progress::kNone;
    });
  };
  // Files that no later process can go on from need no names.
  tier_ = std::make_unique<DiskTier>(disk.directory, directory_.empty() && !has_checkpoints, tell);
  disk_.emplace(tier_.get(), disk.num_bytes, disk.refuses_damage, has_checkpoints);
  return &*disk_;
}

Progress insert_run(Engine& engine, uint32_t writer, const InsertRun& run, uint32_t* done) {
  const uint32_t before = *done;
  for (; *done < run.count; ++*done) {
    const uint32_t i = *done;
    const double priority = run.priorities[run.priorities.size() == 1 ? 0 : i];
    const uint64_t first = run.first + uint64_t{i} * run.stride;
    const auto result = engine.insert(
        writer, {run.table, run.sequence + i, first, run.num_steps, priority, run.version});
    if (result == engine::InsertResult::kBlocked) {
      return *done > before ? Progress::kSome : Progress::kNone;
    }
  }
  return Progress::kDone;
}

void deliver(const engine::Loan& loan, Delivery* delivery) {
  delivery->lease = loan.lease;
  delivery->table_size = loan.table_size;
  delivery->keys.clear();
  delivery->probabilities.clear();
  for (const engine::Sample& sample : loan.samples) {
    delivery->keys.push_back(sample.key);
    delivery->probabilities.push_back(sample.probability);
  }
  delivery->pieces.assign(loan.pieces.begin(), loan.pieces.end());
}

Resumed Store::keep(bool goes_on) {
  const std::scoped_lock lock(mutex_);
  const bool has_checkpoints = disk_config_.durability != Durability::kNone;
  Resumed resumed;
  std::optional<engine::State> state;
  if (goes_on) {
    state = Keeper::load(directory_);
  } else if (has_checkpoints && (state = DurableLog::load(disk_config_.directory))) {
    std::vector<const engine::Schema*> schemas;
    for (uint32_t i = 0; i < engine_.num_pools(); ++i) schemas.push_back(&engine_.pool(i).schema());
    std::vector<uint32_t> max_times_sampled;
    for (uint32_t i = 0; i < engine_.num_tables(); ++i) {
      max_times_sampled.push_back(engine_.table(i).config().max_times_sampled);
    }
    resumed.num_lost = state->lose_memory(schemas, max_times_sampled);
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

// The state of an engine that has tables and nothing in them.
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
    if (is_closed_) return;
    // Closed first, so that nobody is told of a change that the last checkpoint lacks.
    is_closed_ = true;
    const Changed changed(this);
  }
  if (!checkpointer_) return;
  checkpointer_->finish();
  if (const std::string reason = checkpointer_->trouble(); !reason.empty()) throw Error(reason);
}

void Store::set_listener(std::function<void()> listener) {
  const std::scoped_lock lock(mutex_);
  listener_ = std::move(listener);
}

void Store::check_open() const {
  const std::string name = directory_.empty() ? "of this process" : directory_;
  if (is_closed_) throw Error("store (" + name + ") is closed; open it again");
}

std::unique_ptr<WriterPort> Store::open_writer(const std::string& name, uint32_t pool,
                                               Deadline deadline) {
  return std::make_unique<LocalWriter>(this, name, pool, deadline);
}

std::unique_ptr<SamplerPort> Store::open_sampler(uint32_t table, uint32_t num_samples,
                                                 uint32_t num_ahead) {
  return std::make_unique<LocalSampler>(this, table, num_samples, disk_ ? num_ahead : 0);
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
