#include "store/service/checkpointer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "store/service/store.h"
#include "store/steps/gather.h"

namespace tengen::store {

using engine::Engine;

namespace {

// The maximum time until a checkpoint that waits for the disk notices that it must stop.
constexpr std::chrono::milliseconds kSlice{100};

// The maximum bytes of records between two checkpoints.
constexpr uint64_t kMaxLogBytes = uint64_t{64} << 20;

// The delay from a failed checkpoint to an unrequested attempt; doubles after each failure.
constexpr std::chrono::milliseconds kMinPause{100};
constexpr std::chrono::milliseconds kMaxPause{3200};

void add_steps(const Engine& engine, const std::vector<engine::OpenSteps>& steps,
               engine::Log* log) {
  for (const engine::OpenSteps& some : steps) {
    const engine::Pool& pool = engine.pool(some.pool);
    const engine::SavedSteps packed =
        pack_steps(pool.schema(), pool.slots().at(some.slot), some.first, some.count);
    log->add(engine::event::StepsSaved{some.pool, some.chunk, some.first, some.count,
                                       packed.bytes.size()},
             std::span(packed.bytes));
  }
}

// Throws DiskFullError if the folder's file system has no space for `steps`.
void check_room(const Engine& engine, const std::vector<engine::OpenSteps>& steps,
                const std::string& directory) {
  uint64_t num_bytes = 0;
  for (const engine::OpenSteps& some : steps) {
    num_bytes += some.count * engine.pool(some.pool).schema().step_bytes();
  }
  std::error_code unknown;
  const std::filesystem::space_info room = std::filesystem::space(directory, unknown);
  if (unknown || num_bytes <= room.available) return;
  throw DiskFullError("disk_directory (" + directory + ") has no space for " +
                      std::to_string((num_bytes + (1 << 20) - 1) >> 20) +
                      " MiB of steps that a checkpoint must keep; free space in its file system");
}

}  // namespace

Durability durability_of(const std::string& name) {
  constexpr std::pair<const char*, Durability> kNames[] = {{"none", Durability::kNone},
                                                           {"checkpoint", Durability::kCheckpoint},
                                                           {"async", Durability::kAsync},
                                                           {"sync", Durability::kSync}};
  for (const auto& [known, durability] : kNames) {
    if (name == known) return durability;
  }
  throw Error("durability (" + name + ") must be none, checkpoint, async or sync; choose one");
}

Checkpointer::Checkpointer(Store* store, DiskTier* tier, const std::string& directory,
                           const engine::State& state, Durability durability,
                           std::chrono::microseconds interval)
    : store_(store),
      tier_(tier),
      durability_(durability),
      interval_(interval),
      log_(directory, state),
      thread_(start_thread("a store's checkpoints", [this] { run(); })) {}

void Checkpointer::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  work_.notify_all();
  made_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Checkpointer::commit(std::span<const std::byte> records, bool is_wanted) noexcept {
  if (records.empty() && !is_wanted) return true;
  const DurableLog::Append appended = log_.append(records);
  lacks_records_ = appended == DurableLog::Append::kNoMemory;
  // Requests a checkpoint, because only another attempt can resume the log.
  if (appended != DurableLog::Append::kDone) is_wanted = true;
  const std::scoped_lock lock(mutex_);
  has_changed_ = true;
  if (!lacks_records_) num_log_bytes_ += records.size();
  // Also due without a request if the last attempt failed.
  const bool is_due = is_wanted || num_log_bytes_ >= kMaxLogBytes;
  if (is_due && !is_asked_ && failure_.empty()) {
    is_asked_ = true;
    work_.notify_all();
  }
  return !lacks_records_;
}

uint64_t Checkpointer::ask() {
  const std::scoped_lock lock(mutex_);
  is_asked_ = true;
  work_.notify_all();
  return num_begun_ + 1;
}

bool Checkpointer::wait(uint64_t number, Deadline deadline, bool is_patient) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] {
    const bool has_failed = num_failed_ >= number && !is_patient;
    return num_made_ >= number || has_failed || is_stopping_ || log_.is_over();
  };
  if (!made_.wait_until(lock, deadline, is_over)) return false;
  if (num_made_ >= number) return true;
  const std::string reason = failure_.empty() ? log_.trouble() : failure_;
  throw Error(reason.empty() ? "store (closed) cannot make a checkpoint; open it again" : reason);
}

Checkpointer::Failure Checkpointer::failure() {
  const std::scoped_lock lock(mutex_);
  if (log_.is_over()) return {UINT64_MAX, log_.trouble()};
  return {num_failed_, failure_};
}

std::string Checkpointer::trouble() {
  {
    const std::scoped_lock lock(mutex_);
    if (!failure_.empty()) return failure_;
  }
  return log_.trouble();
}

bool Checkpointer::knows(uint64_t number) {
  const std::scoped_lock lock(mutex_);
  return number <= num_begun_ + 1;
}

uint64_t Checkpointer::num_made() {
  const std::scoped_lock lock(mutex_);
  return num_made_;
}

std::optional<std::chrono::steady_clock::time_point> Checkpointer::made_at() {
  const std::scoped_lock lock(mutex_);
  return made_at_;
}

void Checkpointer::finish() {
  (void)wait(ask(), Deadline::max());
  stop();
}

void Checkpointer::run() {
  while (wait_for_work()) {
    end_attempt(error_of([&] { make(); }));
    if (log_.is_over()) break;
  }
  store_->change_surely([&] { return is_stopping(); },
                        [](Engine& engine) { engine.give_up_checkpoints(); });
}

// Notifies callers that wait for a checkpoint, even if memory is exhausted, and then writers that
// wait for rows.
void Checkpointer::end_attempt(std::string error) {
  const bool has_failed = !error.empty();
  bool is_news = false;
  {
    const std::scoped_lock lock(mutex_);
    if (is_stopping_) return;
    is_news = failure_ != error;
    if (has_failed) {
      num_failed_ = num_begun_;
      pause_ = std::clamp(2 * pause_, kMinPause, kMaxPause);
    }
    failure_.swap(error);
    if (is_news && has_failed) std::fprintf(stderr, "warning: %s\n", failure_.c_str());
  }
  made_.notify_all();
  if (!is_news && !has_failed) return;
  // Wakes writers and the store's server, which notifies clients. Ignores a lack of memory.
  (void)error_of([&] {
    store_->change([&](Engine& engine) { engine.set_checkpoint_trouble(failure().reason); });
  });
}

bool Checkpointer::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto is_work = [&] { return is_stopping_ || is_asked_; };
  if (!failure_.empty()) {
    work_.wait_for(lock, pause_, is_work);
  } else if (durability_ == Durability::kCheckpoint) {
    work_.wait(lock, is_work);
  } else {
    while (!work_.wait_for(lock, interval_, is_work) && !has_changed_) {
    }
  }
  has_changed_ = is_asked_ = false;
  num_log_bytes_ = 0;
  return !is_stopping_;
}

void Checkpointer::make() {
  const auto begun_at = std::chrono::steady_clock::now();
  const int64_t begun_us = now_us();
  uint64_t position = 0;
  uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    number = ++num_begun_;
  }
  if (!log_.resume()) throw Error(log_.trouble());
  store_->change([&](Engine& engine) {
    Steady::check_reserve();
    if (lacks_records_) throw std::bad_alloc();
    engine::Log steps;
    add_steps(engine, engine.begin_checkpoint(), &steps);
    if (log_.append(steps.pending()) == DurableLog::Append::kNoMemory) throw std::bad_alloc();
    engine.note_open_steps_kept();
    position = log_.position();
  });
  wait_for_disk();
  if (is_stopping()) return;
  // Reads the records before syncing rows, because a chunk saved later might not be synced.
  engine::Log records;
  store_->read([&](const Engine& engine) {
    for (const auto& saved : engine.saved_of_checkpoint()) records.add(saved);
    const std::vector<engine::OpenSteps> rest = engine.rest_of_checkpoint();
    check_room(engine, rest, log_.directory());
    add_steps(engine, rest, &records);
  });
  const std::string unsynced = tier_->sync();
  // Gives up the log, because after a failed sync, the system may have dropped rows, and later
  // syncs would not report that.
  if (!unsynced.empty()) log_.give_up(unsynced);
  if (!log_.mark(position, begun_us, records.pending())) throw Error(log_.trouble());
  {
    const std::scoped_lock lock(mutex_);
    num_made_ = number;
    made_at_ = begun_at;
    pause_ = {};
  }
  store_->change([](Engine& engine) {
    Steady::check_reserve();
    engine.end_checkpoint();
  });
}

// Blocks until the checkpoint's chunks are saved, or the disk has no free row for the rest.
void Checkpointer::wait_for_disk() {
  bool is_done = false;
  while (!is_done && !is_stopping()) {
    Steady::check_reserve();  // throws without the memory reserve, which saves need
    const auto attempt = [](Engine& engine) {
      const bool is_under_way = engine.checkpoint_state() == Engine::Checkpoint::kUnderWay;
      return is_under_way ? Progress::kNone : Progress::kDone;
    };
    is_done = store_->change_when(std::chrono::steady_clock::now() + kSlice, attempt,
                                  /*also_closed=*/true);
  }
}

bool Checkpointer::is_stopping() {
  const std::scoped_lock lock(mutex_);
  return is_stopping_;
}

}  // namespace tengen::store
