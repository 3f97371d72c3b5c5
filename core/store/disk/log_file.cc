#include "store/disk/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "store/disk/state_files.h"

namespace tengen::store {

LogReader::LogReader(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  check(descriptor_ >= 0, "log", path_, "must be a file that can be read; look after the disk");
  try {
    if (num_bytes() < sizeof header_) return;
    read(0, std::as_writable_bytes(std::span(&header_, 1)));
    offset_ = sizeof header_;
    if (!is_begun()) return;
    check_version(header_.version, path_);
    check(header_.checksum == checksum_of(header_), "log", path_, kMustBeWhole);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

LogReader::~LogReader() { ::close(descriptor_); }

std::optional<LogFrame> LogReader::next() {
  FrameHead head;
  if (!is_begun() || !read_frame(offset_, num_bytes(), &head, &payload_)) return std::nullopt;
  offset_ += sizeof head + head.num_bytes;
  return LogFrame{head.kind, payload_};
}

int LogReader::num_marks_behind() const {
  int num_marks = 0;
  const uint64_t end = num_bytes();
  if (!is_begun() || offset_ >= end) return num_marks;
  std::vector<std::byte> rest(end - offset_);
  std::vector<std::byte> payload;
  read(offset_, rest);
  for (size_t i = 0; i + sizeof(FrameHead) <= rest.size(); ++i) {
    FrameHead head;
    std::memcpy(&head, rest.data() + i, sizeof head);
    const bool is_mark = head.kind == FrameKind::kMark;
    if (is_mark && read_frame(offset_ + i, end, &head, &payload)) ++num_marks;
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
  for (size_t done = 0; done < to.size();) {
    const ssize_t count =
        pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    check(count > 0, "log", path_, "must be whole; look after the disk");
    done += static_cast<size_t>(count);
  }
}

uint64_t LogReader::num_bytes() const {
  struct stat status;
  check(fstat(descriptor_, &status) == 0, "log", path_,
        "must be a file that can be read; look after the disk");
  return static_cast<uint64_t>(status.st_size);
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

}  // namespace tengen::store
