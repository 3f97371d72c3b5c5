#include "store/disk/log_file.h"

#include <fcntl.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/crc32c.h"
#include "base/error.h"
#include "store/disk/state_files.h"

namespace tengen::store {
namespace {

// The maximum sum of the frame sizes that invalid marks claim, as a multiple of the log's size.
// Accidental damage causes smaller sums.
constexpr uint64_t kMaxClaims = 16;

// The record in `state-mark`. Fits in a sector, so a host crash leaves the old or the new record.
struct MarkRecord {
  uint64_t version;
  uint64_t number, writer, offset;
  uint32_t is_exact;
  uint32_t checksum;  // CRC-32C of the fields above
};

uint32_t checksum_of(const MarkRecord& record) {
  return crc32c({reinterpret_cast<const char*>(&record), offsetof(MarkRecord, checksum)});
}

std::string mark_path(const std::string& directory) { return directory + "/state-mark"; }

}  // namespace

LogReader::LogReader(const std::string& path) : file_(path, O_RDONLY) {
  if (file_.num_bytes() < sizeof header_) return;
  read(0, std::as_writable_bytes(std::span(&header_, 1)));
  offset_ = sizeof header_;
  if (!is_begun()) return;
  check_version(header_.version, path);
  check(header_.checksum == checksum_of(header_), "log", path, kMustBeWhole);
}

std::optional<LogFrame> LogReader::next() {
  FrameHead head;
  if (!is_begun() || !read_frame(offset_, file_.num_bytes(), &head, &payload_)) return std::nullopt;
  offset_ += sizeof head + head.num_bytes;
  return LogFrame{head.kind, payload_};
}

int LogReader::num_marks_behind() const {
  int num_marks = 0;
  const uint64_t end = file_.num_bytes();
  if (!is_begun() || offset_ >= end) return num_marks;
  std::vector<std::byte> rest(end - offset_);
  std::vector<std::byte> payload;
  read(offset_, rest);
  // Limits the total size that heads of invalid marks claim. Otherwise a hostile log of heads, or
  // of nested marks, would take forever to read.
  uint64_t claims_left = kMaxClaims * rest.size();
  for (size_t i = 0; num_marks < 2 && i + sizeof(FrameHead) <= rest.size(); ++i) {
    FrameHead head;
    std::memcpy(&head, rest.data() + i, sizeof head);
    if (head.kind != FrameKind::kMark || head.num_bytes > rest.size()) continue;
    if (read_frame(offset_ + i, end, &head, &payload)) {
      ++num_marks;
    } else {
      check(head.num_bytes <= claims_left, "log", file_.path(), kMustBeWhole);
      claims_left -= head.num_bytes;
    }
  }
  return num_marks;
}

bool LogReader::read_frame(uint64_t offset, uint64_t end, FrameHead* head,
                           std::vector<std::byte>* payload) const {
  if (end < offset + sizeof *head) return false;
  read(offset, std::as_writable_bytes(std::span(head, 1)));
  if (head->num_bytes > end - offset - sizeof *head) return false;
  payload->resize(head->num_bytes);
  read(offset + sizeof *head, *payload);
  return checksum_of(header_.writer, offset, *head, *payload) == head->checksum;
}

void LogReader::read(uint64_t offset, std::span<std::byte> to) const {
  check(file_.read(offset, to) == to.size(), "log", file_.path(),
        "must be complete; check the disk");
}

void LogTail::begin(uint64_t number) {
  number_ = number;
  log_ = std::make_unique<LogReader>(log_path(directory_, number));
  position_ = log_->header().position;
  is_lost_ = false;
}

std::optional<LogFrame> LogTail::next_of_log() {
  std::optional<LogFrame> frame = log_->next();
  if (frame && frame->kind == FrameKind::kRecords) position_ += frame->payload.size();
  return frame;
}

std::optional<LogFrame> LogTail::next() {
  while (true) {
    if (std::optional<LogFrame> frame = next_of_log()) return frame;
    const std::string path = log_path(directory_, number_ + 1);
    if (!std::filesystem::exists(path)) {
      const std::vector<uint64_t> states = state_numbers(directory_);
      is_lost_ = !states.empty() && states.front() > number_ + 1;
      return std::nullopt;
    }
    auto later = std::make_unique<LogReader>(path);
    if (!later->is_begun() || later->header().writer != log_->header().writer) return std::nullopt;
    // A log is begun only after the previous log was complete on disk.
    if (std::optional<LogFrame> frame = next_of_log()) return frame;
    check(log_->is_at_end() && later->header().position == position_, "log",
          log_path(directory_, number_), kMustBeWhole);
    log_ = std::move(later);
    ++number_;
  }
}

std::optional<LogMark> mark_of(const LogFrame& frame, std::span<const std::byte>* saved) {
  if (frame.kind != FrameKind::kMark || frame.payload.size() < sizeof(LogMark)) return std::nullopt;
  LogMark mark;
  std::memcpy(&mark, frame.payload.data(), sizeof mark);
  *saved = frame.payload.subspan(sizeof mark);
  return mark;
}

uint64_t checksum_of(const LogHeader& header) {
  return crc32c({reinterpret_cast<const char*>(&header), offsetof(LogHeader, checksum)});
}

uint32_t checksum_of(uint64_t writer, uint64_t offset, const FrameHead& head,
                     std::span<const std::byte> payload) {
  const uint64_t before[] = {writer, offset, static_cast<uint64_t>(head.kind), head.num_bytes};
  const uint32_t checksum = crc32c({reinterpret_cast<const char*>(before), sizeof before});
  return crc32c({reinterpret_cast<const char*>(payload.data()), payload.size()}, checksum);
}

std::optional<LastMark> read_last_mark(const std::string& directory) {
  const std::string path = mark_path(directory);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const DiskFile file(path, O_RDONLY);
  MarkRecord record{};
  const auto bytes = std::as_writable_bytes(std::span(&record, 1));
  check(file.read(0, bytes) == sizeof record, "file", path, kMustBeWhole);
  check_version(record.version, path);
  check(record.checksum == checksum_of(record), "file", path, kMustBeWhole);
  return LastMark{{record.number, record.writer, record.offset}, record.is_exact != 0};
}

LastMarkFile::~LastMarkFile() {
  try {
    if (file_) file_->sync();
  } catch (const Error&) {
    // Ignores errors of the sync: if the disk lacks the last mark, a reader finds it in the log.
  }
}

void LastMarkFile::put(const LastMark& mark) {
  const auto& [number, writer, offset] = mark.end;
  MarkRecord record{kStateVersion, number, writer, offset, mark.is_exact ? 1u : 0u, 0};
  record.checksum = checksum_of(record);
  const auto bytes = std::as_bytes(std::span(&record, 1));
  if (!file_) {
    file_ = make_whole_file(mark_path(directory_), /*is_synced=*/true,
                            [&](const DiskFile& file) { file.write(0, bytes); });
    return;
  }
  file_->write(0, bytes);
  if (mark.is_exact) file_->sync();
}

}  // namespace tengen::store
