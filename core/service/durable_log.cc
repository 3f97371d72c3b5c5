#include "service/durable_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "base/error.h"
#include "service/log_file.h"

namespace tengen::service {
namespace {

using replay::State;

constexpr uint64_t kWriteBytes = uint64_t{256} << 10;

uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Applies the records of a log that lie before `end`, and returns the position behind them. Throws
// Error where the log does not begin at `begin`: the one before it is damaged.
uint64_t apply_log(const std::string& directory, uint64_t number, uint64_t begin, uint64_t end,
                   State* state) {
  LogReader log(log_path(directory, number));
  uint64_t position = log.header().position;
  check(!log.is_begun() || position == begin, "log", log_path(directory, number - 1),
        "must be whole; remove its folder");
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

}  // namespace

std::optional<DurableLog::Last> DurableLog::find_last(const std::string& directory) {
  std::optional<Last> last;
  for (const uint64_t first : state_numbers(directory)) {
    for (uint64_t number = first; std::filesystem::exists(log_path(directory, number)); ++number) {
      LogReader log(log_path(directory, number));
      while (const std::optional<LogFrame> frame = log.next()) {
        std::span<const std::byte> saved;
        const std::optional<LogMark> mark = mark_of(*frame, &saved);
        if (!mark) continue;
        const LogPlace end{number, log.header().writer, log.offset()};
        last = Last{first, end, *mark, {saved.begin(), saved.end()}};
      }
    }
    if (last) return last;  // else of a store that did not live until its first checkpoint
  }
  return std::nullopt;
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
        log_path(directory, number), "must be whole; the disk has lost some of it");
}

DurableLog::DurableLog(std::string directory, const State& state, uint64_t log_bytes)
    : directory_(std::move(directory)),
      log_bytes_(log_bytes),
      writer_(random_number()),
      first_(next_number(directory_)),
      number_(first_) {
  const uint64_t state_bytes = write_state(directory_, first_, state, /*is_synced=*/true);
  begin_log();
  compactor_.emplace(
      directory_, first_, state_bytes, log_bytes_, /*is_synced=*/true,
      [this](uint64_t number, State* into) { apply_whole_log(directory_, number, into); },
      [this](const std::string& reason) { give_up(reason); });
}

DurableLog::~DurableLog() {
  compactor_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DurableLog::begin_log() {
  const std::string path = log_path(directory_, number_);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const LogHeader header{kStateVersion, writer_, position_};
  if (descriptor_ < 0 || ::write(descriptor_, &header, sizeof header) != sizeof header) {
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
  // What is closed is on the disk before a later log says anything.
  if (fdatasync(descriptor_) != 0) {
    throw Error("log (" + log_path(directory_, number_) + ") cannot be synced");
  }
  ::close(std::exchange(descriptor_, -1));
  closed_.push_back({position_, number_, num_bytes_});
  ++number_;
  begin_log();
}

void DurableLog::write_frame(FrameKind kind, std::span<const std::byte> payload) {
  const FrameHead head{kind, checksum_of(payload), payload.size()};
  for (const std::span<const std::byte> part : {std::as_bytes(std::span(&head, 1)), payload}) {
    for (size_t done = 0; done < part.size();) {
      const ssize_t count = ::write(descriptor_, part.data() + done, part.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        throw Error("log (" + log_path(directory_, number_) +
                    ") cannot be written: " + std::strerror(errno));
      }
      done += static_cast<size_t>(count);
    }
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
    int copy = -1;
    {
      const std::scoped_lock lock(mutex_);
      if (!trouble_.empty()) return false;
      write_records();
      write_frame(FrameKind::kMark, payload);
      copy = fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
    }
    // Others may append meanwhile.
    const bool is_good = copy >= 0 && fdatasync(copy) == 0;
    if (copy >= 0) ::close(copy);
    check(is_good, "log", directory_, "cannot be synced");
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

}  // namespace tengen::service
