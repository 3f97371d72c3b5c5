#include "store/disk/durable_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/platform.h"
#include "base/thread.h"
#include "store/disk/log_file.h"

namespace tengen::store {
namespace {

using engine::State;

constexpr uint64_t kWriteBytes = uint64_t{256} << 10;

// Applies log `number`, which is complete, to `state`. Throws Error if the log is damaged.
void apply_log(const std::string& directory, uint64_t number, State* state) {
  LogTail logs(directory);
  logs.begin(number);
  // The first frame of the next log proves that this one is complete.
  while (const std::optional<LogFrame> frame = logs.next()) {
    if (logs.number() != number) return;
    if (frame->kind == FrameKind::kRecords) state->apply(frame->payload);
  }
}

// Returns the last checkpoint in the logs of one writer that follow a state without a gap. Sets
// `stopped_at` to the file in which they stop. `has_order` says that each mark was written when the
// previous mark was on disk. Throws Error if later data proves damage.
std::optional<DurableLog::Last> last_behind(const std::string& directory, uint64_t state,
                                            bool has_order, std::string* stopped_at) {
  std::optional<DurableLog::Last> last;
  *stopped_at = log_path(directory, state);
  if (!std::filesystem::exists(*stopped_at)) return last;
  LogTail logs(directory);
  logs.begin(state);
  while (const std::optional<LogFrame> frame = logs.next()) {
    std::span<const std::byte> saved;
    const std::optional<LogMark> mark = mark_of(*frame, &saved);
    if (mark) last = DurableLog::Last{state, logs.place(), *mark, {saved.begin(), saved.end()}};
  }
  *stopped_at = log_path(directory, logs.number());
  // If two marks follow the gap, the second mark proves that the first mark and all data before it
  // were on disk, so the gap is damage.
  check(!has_order || logs.log().num_marks_behind() < 2, "log", *stopped_at, kMustBeWhole);
  return last;
}

}  // namespace

std::optional<DurableLog::Last> DurableLog::find_last(const std::string& directory) {
  const std::optional<LastMark> known = read_last_mark(directory);
  std::optional<Last> last;
  std::string damaged = directory;  // the file that may be damaged
  for (const uint64_t first : state_numbers(directory)) {
    std::string stopped_at;
    last = last_behind(directory, first, !known || !known->is_exact, &stopped_at);
    if (!known || first <= known->end.number) damaged = stopped_at;
    if (last) break;  // if no checkpoint follows this state, tries an older state
  }
  if (!known || known->end.writer == 0) return last;
  const LogPlace& end = known->end;
  // A checkpoint of another writer belongs to a store that resumed from the known one.
  const bool is_there =
      last && (last->end.writer == end.writer ? std::tie(last->end.number, last->end.offset) >=
                                                    std::tie(end.number, end.offset)
                                              : last->end.number > end.number);
  check(is_there, "file", damaged, kMustBeWhole);
  return last;
}

std::optional<State> DurableLog::load(const std::string& directory) {
  const std::optional<Last> last = find_last(directory);
  if (!last) return std::nullopt;
  State state = read_state(directory, last->state);
  LogTail logs(directory);
  logs.begin(last->state);
  const uint64_t end = last->mark.position;
  for (uint64_t position = logs.position(); position < end; position = logs.position()) {
    const std::optional<LogFrame> frame = logs.next();
    check(frame.has_value(), "log", log_path(directory, logs.number()), kMustBeWhole);
    if (frame->kind != FrameKind::kRecords) continue;
    state.apply(frame->payload.first(std::min<uint64_t>(frame->payload.size(), end - position)));
  }
  state.apply(last->saved);
  return state;
}

DurableLog::DurableLog(std::string directory, const State& state, uint64_t log_bytes, bool is_exact)
    : directory_(std::move(directory)),
      log_bytes_(log_bytes),
      is_exact_(is_exact),
      writer_(random_number() | 1),
      first_(next_number(directory_)),
      number_(first_),
      last_mark_(directory_) {
  const uint64_t state_bytes = write_state(directory_, first_, state, /*is_synced=*/true);
  file_ = make_log(first_, 0);
  num_bytes_ = sizeof(LogHeader);
  begin_compactor(state_bytes);
}

DurableLog::~DurableLog() { compactor_.reset(); }

void DurableLog::begin_compactor(uint64_t state_bytes) {
  compactor_.emplace(
      directory_, first_, state_bytes, log_bytes_, /*is_synced=*/true,
      [this](uint64_t number, State* into) { apply_log(directory_, number, into); },
      [this](const std::string& reason) {
        const std::scoped_lock lock(mutex_);
        fail(reason);
      });
}

// Creates the log file `number`, whose first record has the position `position`.
std::shared_ptr<DiskFile> DurableLog::make_log(uint64_t number, uint64_t position) const {
  const std::string path = log_path(directory_, number);
  auto file = std::make_shared<DiskFile>(path, O_WRONLY | O_CREAT | O_TRUNC);
  LogHeader header{kStateVersion, writer_, position, 0};
  header.checksum = checksum_of(header);
  file->write(0, std::as_bytes(std::span(&header, 1)));
  sync_folder_of(path);
  return file;
}

DurableLog::Append DurableLog::append(std::span<const std::byte> records) noexcept {
  const std::scoped_lock lock(mutex_);
  if (is_over_) return Append::kTrouble;
  try {
    records_.insert(records_.end(), records.begin(), records.end());
  } catch (const std::bad_alloc&) {
    return Append::kNoMemory;
  }
  position_ += records.size();
  if (trouble_.empty() && file_ && records_.size() >= kWriteBytes) {
    const std::string error = error_of([&] { write_records(); });
    if (!error.empty()) fail(error);
  }
  return trouble_.empty() ? Append::kDone : Append::kTrouble;
}

uint64_t DurableLog::position() {
  const std::scoped_lock lock(mutex_);
  return position_;
}

void DurableLog::write_records() {
  if (records_.empty()) return;
  write_frame(FrameKind::kRecords, records_);
  records_.clear();
}

// Begins the next log if the current log is long. Does not hold the lock during fsync.
void DurableLog::close_long_log() {
  std::shared_ptr<DiskFile> closed;
  uint64_t end = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!trouble_.empty()) throw Error(trouble_);
    if (num_bytes_ + records_.size() < log_bytes_) return;
    closed = file_;
  }
  // Syncs most of the log while other threads append to it, so that the second sync is short. After
  // that, appended records stay in memory until the next log exists.
  closed->sync();
  {
    const std::scoped_lock lock(mutex_);
    if (!trouble_.empty()) throw Error(trouble_);
    write_records();
    end = position_;
    closed_.push_back({end, number_, num_bytes_});
    file_.reset();
    ++number_;
  }
  // The log must be on disk before the next one has any record.
  closed->sync();
  std::shared_ptr<DiskFile> next = make_log(number_, end);
  const std::scoped_lock lock(mutex_);
  file_.swap(next);
  num_bytes_ = sizeof(LogHeader);
}

void DurableLog::write_frame(FrameKind kind, std::span<const std::byte> payload) {
  FrameHead head{kind, 0, payload.size()};
  head.checksum = checksum_of(writer_, num_bytes_, head, payload);
  file_->write(num_bytes_, std::as_bytes(std::span(&head, 1)));
  file_->write(num_bytes_ + sizeof head, payload);
  num_bytes_ += sizeof head + payload.size();
}

bool DurableLog::mark(uint64_t position, int64_t begun_us,
                      std::span<const std::byte> records) noexcept {
  const std::string error = error_of([&] {
    const LogMark head{position, begun_us};
    std::vector<std::byte> payload(sizeof head);
    std::memcpy(payload.data(), &head, sizeof head);
    payload.insert(payload.end(), records.begin(), records.end());
    close_long_log();
    std::shared_ptr<DiskFile> file;
    LastMark last{{}, is_exact_};
    {
      const std::scoped_lock lock(mutex_);
      if (!trouble_.empty()) throw Error(trouble_);
      write_records();
      write_frame(FrameKind::kMark, payload);
      file = file_;
      last.end = {number_, writer_, num_bytes_};
    }
    // Without the lock, so that others can append in the meantime.
    file->sync();
    // The first put() blocks until the mark is on disk. Only then are older files removed.
    last_mark_.put(last);
    if (!std::exchange(has_mark_, true)) remove_files(directory_, 0, first_);
    const std::scoped_lock lock(mutex_);
    const auto is_held = [&](const Closed& log) { return log.end <= position; };
    const auto held = std::find_if_not(closed_.begin(), closed_.end(), is_held);
    for (auto log = closed_.begin(); log != held; ++log) {
      compactor_->add(log->number + 1, log->num_bytes);
    }
    closed_.erase(closed_.begin(), held);
  });
  if (error.empty()) return true;
  const std::scoped_lock lock(mutex_);
  fail(error);
  return false;
}

bool DurableLog::resume() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (trouble_.empty() || is_over_) return !is_over_;
  }
  compactor_.reset();
  // Skips one number, so that a reader of the old log does not continue with the new one. The old
  // log may lack records that are in the new state.
  const uint64_t number = number_ + 2;
  const std::string error = error_of([&] {
    take_in();
    const uint64_t state_bytes = write_state(directory_, number, *behind_, /*is_synced=*/true);
    uint64_t end = 0;  // the position after the records in the state
    {
      const std::scoped_lock lock(mutex_);
      end = position_ - records_.size();
    }
    std::shared_ptr<DiskFile> next = make_log(number, end);
    const std::scoped_lock lock(mutex_);
    file_.swap(next);
    num_bytes_ = sizeof(LogHeader);
    number_ = number;
    first_ = number;
    closed_.clear();
    has_mark_ = false;
    begin_compactor(state_bytes);
    behind_.reset();
    if (!is_over_) trouble_.clear();
  });
  if (error.empty()) return !is_over();
  // Removes partial files, which occupy space that the next attempt needs.
  (void)error_of([&] { remove_files(directory_, number); });
  const std::scoped_lock lock(mutex_);
  trouble_.clear();
  fail(error);
  return false;
}

// Updates behind_ to the current state. If that can never succeed, gives up the log, because its
// appended records would otherwise stay in memory forever.
void DurableLog::take_in() {
  try {
    if (!behind_) behind_ = read_written();
    apply_rest();  // records left by an earlier attempt that ran out of memory
    {
      const std::scoped_lock lock(mutex_);
      rest_.swap(records_);
    }
    apply_rest();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const ShortageError&) {
    throw;
  } catch (...) {
    give_up(message_of(std::current_exception()));
    behind_.reset();
    rest_ = {};
    throw;
  }
}

void DurableLog::apply_rest() {
  size_t num_applied = 0;
  try {
    behind_->apply(rest_, &num_applied);
    rest_ = {};
  } catch (const std::bad_alloc&) {
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(num_applied));
    throw;
  }
}

// Returns the state in this writer's files, which lacks only the records in records_.
State DurableLog::read_written() {
  const std::vector<uint64_t> numbers = state_numbers(directory_);
  check(!numbers.empty(), "disk_directory", directory_, "must have a state; leave it alone");
  State state = read_state(directory_, numbers.front());
  LogTail logs(directory_);
  logs.begin(numbers.front());
  while (const std::optional<LogFrame> frame = logs.next()) {
    if (frame->kind == FrameKind::kRecords) state.apply(frame->payload);
  }
  const std::scoped_lock lock(mutex_);
  check(logs.log().header().writer == writer_ && logs.position() == position_ - records_.size(),
        "log", log_path(directory_, logs.number()), kMustBeWhole);
  return state;
}

void DurableLog::give_up(const std::string& reason) noexcept {
  const std::scoped_lock lock(mutex_);
  is_over_ = true;
  records_ = {};
  fail(reason);
}

bool DurableLog::is_over() {
  const std::scoped_lock lock(mutex_);
  return is_over_;
}

std::string DurableLog::trouble() {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

void DurableLog::fail(const std::string& reason) {
  if (!trouble_.empty()) return;
  (void)error_of([&] { trouble_ = "what the store holds will not outlive its host: " + reason; });
  if (trouble_.empty()) trouble_ = "out of memory";
}

}  // namespace tengen::store
