#include "service/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "service/state_files.h"

namespace tengen::service {

LogReader::LogReader(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  check(descriptor_ >= 0, "log", path_, "must be a file that can be read; look after the disk");
  try {
    if (num_bytes() < sizeof header_) return;
    read(0, std::as_writable_bytes(std::span(&header_, 1)));
    offset_ = sizeof header_;
    if (is_begun()) check_version(header_.version, path_);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

LogReader::~LogReader() { ::close(descriptor_); }

std::optional<LogFrame> LogReader::next() {
  const uint64_t end = num_bytes();
  FrameHead head;
  if (!is_begun() || end < offset_ + sizeof head) return std::nullopt;
  read(offset_, std::as_writable_bytes(std::span(&head, 1)));
  if (head.num_bytes > end - offset_ - sizeof head) return std::nullopt;
  payload_.resize(head.num_bytes);
  read(offset_ + sizeof head, payload_);
  if (checksum_of(payload_) != head.checksum) return std::nullopt;
  offset_ += sizeof head + head.num_bytes;
  return LogFrame{head.kind, payload_};
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

uint32_t checksum_of(std::span<const std::byte> payload) {
  return crc32c({reinterpret_cast<const char*>(payload.data()), payload.size()});
}

}  // namespace tengen::service
