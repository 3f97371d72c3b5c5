#include "store/disk/last_mark.h"

#include <fcntl.h>

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/crc32c.h"
#include "base/error.h"
#include "store/disk/state_files.h"

namespace tengen::store {
namespace {

// Fits into one sector, so that a lost host leaves either the old record or the new one.
struct Record {
  uint64_t version;
  uint64_t number, writer, offset;
  uint32_t is_exact;
  uint32_t checksum;  // CRC-32C of what is before it
};

uint32_t checksum_of(const Record& record) {
  return crc32c({reinterpret_cast<const char*>(&record), offsetof(Record, checksum)});
}

std::string path_in(const std::string& directory) { return directory + "/state-mark"; }

}  // namespace

std::optional<LastMark> read_last_mark(const std::string& directory) {
  const std::string path = path_in(directory);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const DiskFile file(path, O_RDONLY);
  Record record{};
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
    // A mark that the disk lacks is found in the log.
  }
}

void LastMarkFile::put(const LastMark& mark) {
  const auto& [number, writer, offset] = mark.end;
  Record record{kStateVersion, number, writer, offset, mark.is_exact ? 1u : 0u, 0};
  record.checksum = checksum_of(record);
  const auto bytes = std::as_bytes(std::span(&record, 1));
  if (!file_) {
    file_ = make_whole_file(path_in(directory_), /*is_synced=*/true,
                            [&](const DiskFile& file) { file.write(0, bytes); });
    return;
  }
  file_->write(0, bytes);
  if (mark.is_exact) file_->sync();
}

}  // namespace tengen::store
