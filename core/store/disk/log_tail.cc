#include "store/disk/log_tail.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "store/disk/state_files.h"

namespace tengen::store {
namespace {

using engine::Log;
using engine::event::ChunkSaved;

void find_saved(std::span<const std::byte> records, const LogTail::Take& take) {
  while (records.size() >= sizeof(Log::Head)) {
    Log::Head head;
    std::memcpy(&head, records.data(), sizeof head);
    if (head.num_bytes < sizeof head || head.num_bytes > records.size()) break;
    if (head.kind == ChunkSaved::kKind && head.num_bytes >= sizeof head + sizeof(ChunkSaved)) {
      ChunkSaved saved;
      std::memcpy(&saved, records.data() + sizeof head, sizeof saved);
      take(saved);
    }
    records = records.subspan(head.num_bytes);
  }
  check(records.empty(), "log", records.size(), "must hold whole records; the disk has lost some");
}

}  // namespace

bool LogTail::go_on(const LogPlace& place) {
  if (!std::filesystem::exists(log_path(directory_, place.number))) return false;
  begin(place.number);
  if (log_->header().writer != place.writer) return false;
  while (log_->offset() < place.offset && log_->next()) {
  }
  return log_->offset() == place.offset;
}

void LogTail::begin(uint64_t number) {
  log_ = std::make_unique<LogReader>(log_path(directory_, number));
  number_ = number;
  is_lost_ = false;
}

std::optional<LogTail::Mark> LogTail::advance(const Take& take) {
  std::optional<Mark> newest;
  while (const std::optional<LogFrame> frame = next_frame()) {
    if (frame->kind == FrameKind::kRecords) find_saved(frame->payload, take);
    std::span<const std::byte> saved;  // the records tell of them too
    const std::optional<LogMark> mark = mark_of(*frame, &saved);
    if (mark) newest = Mark{{number_, log_->header().writer, log_->offset()}, *mark};
  }
  return newest;
}

std::optional<LogFrame> LogTail::next_frame() {
  while (true) {
    if (std::optional<LogFrame> frame = log_->next()) return frame;
    const std::string path = log_path(directory_, number_ + 1);
    if (!std::filesystem::exists(path)) {
      const std::vector<uint64_t> states = state_numbers(directory_);
      is_lost_ = !states.empty() && states.front() > number_ + 1;
      return std::nullopt;
    }
    auto later = std::make_unique<LogReader>(path);
    if (!later->is_begun()) return std::nullopt;
    // The log before it is closed, and whole.
    if (std::optional<LogFrame> frame = log_->next()) return frame;
    check(log_->is_at_end(), "log", log_path(directory_, number_), kMustBeWhole);
    log_ = std::move(later);
    ++number_;
  }
}

}  // namespace tengen::store
