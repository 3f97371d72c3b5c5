#include "store/disk/last_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
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
  const bool is_whole = ::pread(file.descriptor(), &record, sizeof record, 0) == sizeof record;
  check(is_whole, "file", path, kMustBeWhole);
  check_version(record.version, path);
  check(record.checksum == checksum_of(record), "file", path, kMustBeWhole);
  return LastMark{{record.number, record.writer, record.offset}, record.is_exact != 0};
}

LastMarkFile::~LastMarkFile() {
  if (file_) (void)file_->sync();
}

void LastMarkFile::put(const LastMark& mark, bool is_synced) {
  const auto& [number, writer, offset] = mark.end;
  Record record{kStateVersion, number, writer, offset, mark.is_exact ? 1u : 0u, 0};
  record.checksum = checksum_of(record);
  const std::string path = path_in(directory_);
  const bool is_first = file_ == nullptr;
  // Under its name the file is whole, or there is none.
  if (is_first) file_ = std::make_unique<DiskFile>(path + ".part", O_WRONLY | O_CREAT | O_TRUNC);
  bool is_good = file_->is_open() && file_->write(0, std::as_bytes(std::span(&record, 1)));
  if (is_first || is_synced) is_good = is_good && file_->sync();
  if (is_first) is_good = is_good && rename_file(path + ".part", path);
  if (!is_good) {
    throw Error("file (" + path + ") cannot be written: " + std::strerror(errno) +
                "; free room in its file system");
  }
  if (is_first) sync_folder(directory_);
}

}  // namespace tengen::store
