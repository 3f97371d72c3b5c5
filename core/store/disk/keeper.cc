#include "store/disk/keeper.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"

namespace tengen::store {
namespace {

using engine::State;

// How many log files are replaced by a state.
constexpr uint64_t kMinLogs = 4;
// Commits without files until room is looked for again.
constexpr uint32_t kMaxSkipped = 16;

// What a log begins with; its records lie behind.
struct MemoryLogHeader {
  uint64_t version;
  std::atomic<uint64_t> num_bytes;  // of records that were committed
  uint64_t padding[6];
};
static_assert(sizeof(MemoryLogHeader) == 64 && std::atomic<uint64_t>::is_always_lock_free);

void apply_log(const std::string& path, State* state) {
  const transport::SharedMemory file = transport::SharedMemory::open(path);
  const auto* header = reinterpret_cast<const MemoryLogHeader*>(file.data());
  check(file.num_bytes() >= sizeof(MemoryLogHeader), "log", path, kMustBeWhole);
  if (header->version == 0) return;  // the process was killed before it began this log
  check_version(header->version, path);
  const uint64_t num_bytes = header->num_bytes.load(std::memory_order_acquire);
  check(num_bytes <= file.num_bytes() - sizeof(MemoryLogHeader), "log", path, kMustBeWhole);
  state->apply({file.data() + sizeof(MemoryLogHeader), num_bytes});
}

}  // namespace

std::optional<State> Keeper::load(const std::string& directory) {
  const std::vector<uint64_t> numbers = state_numbers(directory);
  if (numbers.empty()) return std::nullopt;
  State state = read_state(directory, numbers.front());
  for (uint64_t number = numbers.front();; ++number) {
    const std::string path = log_path(directory, number);
    if (!std::filesystem::exists(path)) break;
    apply_log(path, &state);
  }
  return state;
}

Keeper::Keeper(std::string directory, uint64_t log_bytes, const State& state)
    : directory_(std::move(directory)), log_bytes_(log_bytes), number_(next_number(directory_)) {
  begin(state);
}

void Keeper::begin(const State& state) {
  const uint64_t state_bytes = write_state(directory_, number_, state, /*is_synced=*/false);
  remove_files(directory_, 0, number_);
  begin_log(log_bytes_);
  compactor_.emplace(
      directory_, number_, state_bytes, kMinLogs * log_bytes_, /*is_synced=*/false,
      [this](uint64_t number, State* into) { apply_log(log_path(directory_, number), into); },
      [this](const std::string& reason) { set_trouble(reason); });
}

void Keeper::begin_log(uint64_t num_bytes) {
  log_.emplace(transport::SharedMemory::create(log_path(directory_, number_),
                                               sizeof(MemoryLogHeader) + num_bytes));
  reinterpret_cast<MemoryLogHeader*>(log_->data())->version = kStateVersion;
  num_committed_ = 0;
}

void Keeper::commit(std::span<const std::byte> records) noexcept {
  if (is_over_) return;
  if (behind_) {
    const std::string error = error_of([&] { resume(records); });
    if (!error.empty()) set_trouble(error);
    return;
  }
  const bool has_failed = !trouble().empty();  // the thread that replaces logs
  const std::string error = has_failed ? "" : error_of([&] { append(records); });
  if (has_failed || !error.empty()) give_up(error, records);
}

void Keeper::append(std::span<const std::byte> records) {
  if (sizeof(MemoryLogHeader) + num_committed_ + records.size() > log_->num_bytes()) {
    compactor_->add(++number_, num_committed_);
    begin_log(std::max<uint64_t>(log_bytes_, records.size()));
  }
  std::byte* begin = log_->data() + sizeof(MemoryLogHeader);
  std::memcpy(begin + num_committed_, records.data(), records.size());
  num_committed_ += records.size();
  reinterpret_cast<MemoryLogHeader*>(log_->data())
      ->num_bytes.store(num_committed_, std::memory_order_release);
}

std::string Keeper::trouble() {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

// Takes the state into memory, before the files go: another process must not go on from them.
void Keeper::give_up(const std::string& reason, std::span<const std::byte> records) noexcept {
  const std::string error = error_of([&] {
    compactor_.reset();
    behind_ = load(directory_);
    check(behind_.has_value(), "directory", directory_, "must have a state; leave it alone");
    behind_->apply(records);
  });
  is_over_ = !error.empty();
  log_.reset();
  (void)error_of([&] { remove_files(directory_, 0); });
  if (is_over_ || !reason.empty()) set_trouble(is_over_ ? error : reason);
}

void Keeper::resume(std::span<const std::byte> records) {
  const std::string refused = error_of([&] { behind_->apply(records); });
  is_over_ = !refused.empty();
  if (is_over_) throw Error(refused);
  if (++num_skipped_ < kMaxSkipped) return;
  num_skipped_ = 0;
  transport::SharedMemory::check_room(directory_, log_bytes_);
  ++number_;
  const std::string error = error_of([&] { begin(*behind_); });
  if (!error.empty()) {
    log_.reset();
    remove_files(directory_, 0);
    throw Error(error);
  }
  behind_.reset();
  const std::scoped_lock lock(mutex_);
  trouble_.clear();
}

void Keeper::set_trouble(const std::string& reason) noexcept {
  const std::scoped_lock lock(mutex_);
  (void)error_of(
      [&] { trouble_ = "what the store holds will not outlive its process: " + reason; });
  if (trouble_.empty()) trouble_ = "out of memory";
}

}  // namespace tengen::store
