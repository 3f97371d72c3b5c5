#include "store/disk/keeper.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>
#include <vector>

#include "base/disk_file.h"
#include "base/error.h"
#include "base/thread.h"

namespace tengen::store {
namespace {

using engine::State;

// The number of logs after which a state replaces them.
constexpr uint64_t kMinLogs = 4;
// The delay before the next check for memory or space. It doubles after each check that fails, and
// is long compared with the check itself, because the store waits during a check.
constexpr std::chrono::milliseconds kMinCheckPause{100};
constexpr std::chrono::milliseconds kMaxCheckPause{3200};
constexpr int kPausesPerLook = 16;
// The version number that marks a log as out of date; see Keeper::set_aside().
constexpr uint64_t kSetAside = UINT64_MAX;

// The header of a log file. The records follow.
struct MemoryLogHeader {
  uint64_t version;
  std::atomic<uint64_t> num_bytes;  // bytes of committed records
  uint64_t padding[6];
};
static_assert(sizeof(MemoryLogHeader) == 64 && std::atomic<uint64_t>::is_always_lock_free);

transport::SharedMemory make_log(const std::string& directory, uint64_t number,
                                 uint64_t num_bytes) {
  transport::SharedMemory log = transport::SharedMemory::create(
      log_path(directory, number), sizeof(MemoryLogHeader) + num_bytes);
  reinterpret_cast<MemoryLogHeader*>(log.data())->version = kStateVersion;
  return log;
}

MemoryLogHeader* header_of(const transport::SharedMemory& log) {
  return reinterpret_cast<MemoryLogHeader*>(log.data());
}

// Returns false if the log was set aside.
bool apply_log(const std::string& path, State* state) {
  const std::vector<std::byte> file = read_file(path);
  check(file.size() >= sizeof(MemoryLogHeader), "log", path, kMustBeWhole);
  uint64_t version = 0;
  uint64_t num_bytes = 0;
  std::memcpy(&version, file.data(), sizeof version);
  std::memcpy(&num_bytes, file.data() + offsetof(MemoryLogHeader, num_bytes), sizeof num_bytes);
  if (version == 0) return true;  // the process was killed before it began this log
  if (version != kSetAside) check_version(version, path);
  check(num_bytes <= file.size() - sizeof(MemoryLogHeader), "log", path, kMustBeWhole);
  state->apply(std::span(file).subspan(sizeof(MemoryLogHeader), num_bytes));
  return version != kSetAside;
}

// Returns the state in the files, or none. Sets `was_set_aside` if the files are out of date.
std::optional<State> read_files(const std::string& directory, bool* was_set_aside) {
  const std::vector<uint64_t> numbers = state_numbers(directory);
  if (numbers.empty()) return std::nullopt;
  State state = read_state(directory, numbers.front());
  for (uint64_t number = numbers.front();; ++number) {
    const std::string path = log_path(directory, number);
    if (!std::filesystem::exists(path)) break;
    if (!apply_log(path, &state)) *was_set_aside = true;
  }
  return state;
}

}  // namespace

std::optional<State> Keeper::load(const std::string& directory) {
  bool was_set_aside = false;
  std::optional<State> state = read_files(directory, &was_set_aside);
  if (was_set_aside) state.reset();
  return state;
}

Keeper::Keeper(std::string directory, uint64_t log_bytes, const State& state)
    : directory_(std::move(directory)), log_bytes_(log_bytes), number_(next_number(directory_)) {
  begin(state);
}

void Keeper::begin(const State& state) {
  const uint64_t state_bytes = write_state(directory_, number_, state, /*is_synced=*/false);
  remove_files(directory_, 0, number_);
  log_.emplace(make_log(directory_, number_, log_bytes_));
  num_committed_ = 0;
  compactor_.emplace(
      directory_, number_, state_bytes, kMinLogs * log_bytes_, /*is_synced=*/false,
      [this](uint64_t number, State* into) { apply_log(log_path(directory_, number), into); },
      [this](const std::string& reason) { set_trouble(reason); });
}

bool Keeper::commit(std::span<const std::byte> records) noexcept {
  if (is_over_) return true;
  if (!is_behind_) {
    const bool has_failed = !trouble().empty();  // whether the thread that replaces logs has failed
    const std::string error = has_failed ? "" : error_of([&] { append(records); });
    if (!has_failed && error.empty()) return true;
    set_aside();
    if (!has_failed) set_trouble(error);
  }
  bool is_taken = false;
  const std::string error = error_of([&] {
    is_taken = resume(records);
    if (is_taken) write_all();
  });
  if (!error.empty()) set_trouble(error);
  return is_taken || is_over_;
}

void Keeper::append(std::span<const std::byte> records) {
  if (sizeof(MemoryLogHeader) + num_committed_ + records.size() > log_->num_bytes()) {
    // Does not assign to log_ yet, because set_aside() needs the old log until the next one exists.
    transport::SharedMemory next =
        make_log(directory_, number_ + 1, std::max<uint64_t>(log_bytes_, records.size()));
    compactor_->add(++number_, num_committed_);
    log_.emplace(std::move(next));
    num_committed_ = 0;
  }
  std::byte* begin = log_->data() + sizeof(MemoryLogHeader);
  std::memcpy(begin + num_committed_, records.data(), records.size());
  num_committed_ += records.size();
  header_of(*log_)->num_bytes.store(num_committed_, std::memory_order_release);
}

std::string Keeper::trouble() {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

// Marks the last log as out of date, so that no process resumes from it. Needs no memory.
void Keeper::set_aside() noexcept {
  header_of(*log_)->version = kSetAside;
  compactor_.reset();
  is_behind_ = true;
  look_at_ = {};
  pause_ = {};
}

// Applies the files and `records` to the state in memory. Returns false without an attempt if the
// next check for memory is not due yet.
bool Keeper::resume(std::span<const std::byte> records) {
  const bool lacked_memory = !behind_ || num_applied_ > 0;
  if (lacked_memory && Clock::now() < look_at_) return false;
  try {
    if (!behind_) take_files();
    behind_->apply(records.subspan(num_applied_), &num_applied_);
    num_applied_ = 0;
  } catch (const std::bad_alloc&) {
    wait_longer(Clock::duration{0});
    throw;
  } catch (const ShortageError&) {
    wait_longer(Clock::duration{0});
    throw;
  } catch (...) {
    is_over_ = true;
    behind_.reset();
    log_.reset();
    (void)error_of([&] { remove_files(directory_, 0); });
    throw;
  }
  return true;
}

void Keeper::take_files() {
  bool was_set_aside = false;
  behind_ = read_files(directory_, &was_set_aside);
  check(behind_.has_value(), "directory", directory_, "must have a state; leave it alone");
  num_applied_ = 0;
  log_.reset();
  (void)error_of([&] { remove_files(directory_, 0); });
}

// Begins new files with the current state, if there is space for them.
void Keeper::write_all() {
  const Clock::time_point now = Clock::now();
  if (now < look_at_) return;
  const std::string error = error_of([&] {
    // Checks the space first, because files that do not fit would use up space that others need.
    transport::SharedMemory::check_room(directory_, log_bytes_);
    uint64_t num_bytes = log_bytes_;
    behind_->write([&](std::span<const std::byte> some) { num_bytes += some.size(); });
    transport::SharedMemory::check_room(directory_, num_bytes);
    ++number_;
    begin(*behind_);
  });
  if (!error.empty()) {
    compactor_.reset();
    log_.reset();
    (void)error_of([&] { remove_files(directory_, 0); });
    wait_longer(Clock::now() - now);
    throw Error(error);
  }
  behind_.reset();
  is_behind_ = false;
  const std::scoped_lock lock(mutex_);
  trouble_.clear();
}

void Keeper::wait_longer(Clock::duration look) {
  pause_ = std::clamp<Clock::duration>(2 * pause_, kMinCheckPause, kMaxCheckPause);
  look_at_ = Clock::now() + std::max<Clock::duration>(pause_, kPausesPerLook * look);
}

void Keeper::set_trouble(const std::string& reason) noexcept {
  const std::scoped_lock lock(mutex_);
  (void)error_of(
      [&] { trouble_ = "what the store holds will not outlive its process: " + reason; });
  if (trouble_.empty()) trouble_ = "out of memory";
}

}  // namespace tengen::store
