#include "store/disk/durable_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "store/disk/log_file.h"

namespace tengen::store {
namespace {

using engine::State;

constexpr uint64_t kWriteBytes = uint64_t{256} << 10;

uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device() | 1;
}

// Applies the records of a log that lie before `end`, and returns the position behind them. Throws
// Error where the log does not begin at `begin`, as then the log before it is damaged.
uint64_t apply_log(const std::string& directory, uint64_t number, uint64_t begin, uint64_t end,
                   State* state) {
  LogReader log(log_path(directory, number));
  uint64_t position = log.header().position;
  check(!log.is_begun() || position == begin, "log", log_path(directory, number - 1), kMustBeWhole);
  while (const std::optional<LogFrame> frame = log.next()) {
    if (frame->kind != FrameKind::kRecords) continue;
    const std::span<const std::byte> records = frame->payload;
    if (position < end) {
      state->apply(records.first(std::min<uint64_t>(records.size(), end - position)));
    }
    position += records.size();
  }
  return position;
}

// The logs of one writer that follow a state, as far as none is missing.
class Chain {
 public:
  // With `has_order` each mark was written when the mark before it was on the disk. Throws Error
  // for damage that what lies behind it proves.
  Chain(const std::string& directory, uint64_t first, bool has_order)
      : stopped_at_(log_path(directory, first)) {
    uint64_t writer = 0;
    for (uint64_t number = first; std::filesystem::exists(log_path(directory, number)); ++number) {
      const std::string path = log_path(directory, number);
      LogReader log(path);
      const bool is_next = log.is_begun() && (number == first || log.header().writer == writer);
      if (!is_next) return;
      writer = log.header().writer;
      // The log before it was whole on the disk before this one was begun.
      check(is_whole_, "log", stopped_at_, kMustBeWhole);
      stopped_at_ = path;
      while (const std::optional<LogFrame> frame = log.next()) {
        std::span<const std::byte> saved;
        const std::optional<LogMark> mark = mark_of(*frame, &saved);
        if (!mark) continue;
        const LogPlace end{number, writer, log.offset()};
        last_ = DurableLog::Last{first, end, *mark, {saved.begin(), saved.end()}};
      }
      is_whole_ = log.is_at_end();
      // Where two marks follow, the second proves that the first was on the disk, with all before
      // it.
      if (!is_whole_ && has_order) check(log.num_marks_behind() < 2, "log", path, kMustBeWhole);
    }
  }

  const std::optional<DurableLog::Last>& last() const { return last_; }
  // The last file of the chain.
  const std::string& stopped_at() const { return stopped_at_; }

 private:
  std::string stopped_at_;
  bool is_whole_ = true;
  std::optional<DurableLog::Last> last_;
};

}  // namespace

std::optional<DurableLog::Last> DurableLog::find_last(const std::string& directory) {
  const std::optional<LastMark> known = read_last_mark(directory);
  std::optional<Last> last;
  std::string damaged = directory;  // the file that may lack a checkpoint
  for (const uint64_t first : state_numbers(directory)) {
    Chain chain(directory, first, !known || !known->is_exact);
    if (!known || first <= known->end.number) damaged = chain.stopped_at();
    last = chain.last();
    if (last) break;  // else this state is of a store that made no checkpoint
  }
  if (!known || known->end.writer == 0) return last;
  const LogPlace& end = known->end;
  // A checkpoint of another writer is of a store that went on from the known one.
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
  uint64_t position = LogReader(log_path(directory, last->state)).header().position;
  for (uint64_t number = last->state; position < last->mark.position; ++number) {
    position = apply_log(directory, number, position, last->mark.position, &state);
  }
  state.apply(last->saved);
  return state;
}

void DurableLog::apply_whole_log(const std::string& directory, uint64_t number, State* into) {
  const uint64_t begin = LogReader(log_path(directory, number)).header().position;
  const uint64_t end = apply_log(directory, number, begin, UINT64_MAX, into);
  check(end == LogReader(log_path(directory, number + 1)).header().position, "log",
        log_path(directory, number), kMustBeWhole);
}

DurableLog::DurableLog(std::string directory, const State& state, uint64_t log_bytes)
    : directory_(std::move(directory)),
      log_bytes_(log_bytes),
      writer_(random_number()),
      first_(next_number(directory_)),
      number_(first_),
      last_mark_(directory_) {
  const uint64_t state_bytes = write_state(directory_, first_, state, /*is_synced=*/true);
  begin_log();
  compactor_.emplace(
      directory_, first_, state_bytes, log_bytes_, /*is_synced=*/true,
      [this](uint64_t number, State* into) { apply_whole_log(directory_, number, into); },
      [this](const std::string& reason) { give_up(reason); });
}

DurableLog::~DurableLog() { compactor_.reset(); }

void DurableLog::begin_log() {
  const std::string path = log_path(directory_, number_);
  file_ = std::make_shared<DiskFile>(path, O_WRONLY | O_CREAT | O_TRUNC);
  LogHeader header{kStateVersion, writer_, position_, 0};
  header.checksum = checksum_of(header);
  if (!file_->is_open() || !file_->write(0, std::as_bytes(std::span(&header, 1)))) {
    throw Error("log (" + path + ") cannot be written: " + std::strerror(errno) +
                "; free room in its file system");
  }
  num_bytes_ = sizeof header;
  sync_folder(directory_);
}

void DurableLog::append(std::span<const std::byte> records) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!trouble_.empty()) return;
  try {
    records_.insert(records_.end(), records.begin(), records.end());
    position_ += records.size();
    if (records_.size() >= kWriteBytes) write_records();
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

uint64_t DurableLog::position() {
  const std::scoped_lock lock(mutex_);
  return position_;
}

void DurableLog::write_records() {
  if (records_.empty()) return;
  write_frame(FrameKind::kRecords, records_);
  records_.clear();
  if (num_bytes_ < log_bytes_) return;
  // A log that is closed is on the disk before the next one has any record.
  check(file_->sync(), "log", file_->path(), "cannot be synced; look after the disk");
  closed_.push_back({position_, number_, num_bytes_});
  ++number_;
  begin_log();
}

void DurableLog::write_frame(FrameKind kind, std::span<const std::byte> payload) {
  FrameHead head{kind, 0, payload.size()};
  head.checksum = checksum_of(writer_, num_bytes_, head, payload);
  if (!file_->write(num_bytes_, std::as_bytes(std::span(&head, 1))) ||
      !file_->write(num_bytes_ + sizeof head, payload)) {
    throw Error("log (" + file_->path() + ") cannot be written: " + std::strerror(errno));
  }
  num_bytes_ += sizeof head + payload.size();
}

bool DurableLog::mark(uint64_t position, std::chrono::steady_clock::time_point begun_at,
                      std::span<const std::byte> records) noexcept {
  try {
    const auto begun =
        std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - begun_at);
    const LogMark head{
        position,
        std::chrono::duration_cast<std::chrono::microseconds>(begun.time_since_epoch()).count()};
    std::vector<std::byte> payload(sizeof head);
    std::memcpy(payload.data(), &head, sizeof head);
    payload.insert(payload.end(), records.begin(), records.end());
    std::shared_ptr<DiskFile> file;
    LastMark last;
    {
      const std::scoped_lock lock(mutex_);
      if (!trouble_.empty()) return false;
      write_records();
      write_frame(FrameKind::kMark, payload);
      file = file_;
      last.end = {number_, writer_, num_bytes_};
    }
    // Without the lock: others may append meanwhile.
    check(file->sync(), "log", file->path(), "cannot be synced; look after the disk");
    // The first time this blocks, so that the file is on the disk before older files are removed.
    last_mark_.put(last, /*is_synced=*/false);
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(has_mark_, true)) remove_files(directory_, first_);
    const auto is_held = [&](const Closed& log) { return log.end <= position; };
    const auto held = std::find_if_not(closed_.begin(), closed_.end(), is_held);
    for (auto log = closed_.begin(); log != held; ++log) {
      compactor_->add(log->number + 1, log->num_bytes);
    }
    closed_.erase(closed_.begin(), held);
    return true;
  } catch (const std::exception& error) {
    give_up(error.what());
    return false;
  }
}

void DurableLog::give_up(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  fail(reason);
}

std::string DurableLog::trouble() {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

void DurableLog::fail(const std::string& reason) {
  if (trouble_.empty()) trouble_ = "what the store holds will not outlive its host: " + reason;
}

}  // namespace tengen::store
