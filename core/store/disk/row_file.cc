#include "store/disk/row_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"

namespace tengen::store {
namespace {

// The bytes that are reserved in one call, so that the file system finds long contiguous runs and
// its journal delays no rows.
constexpr uint64_t kGrowBytes = uint64_t{64} << 20;
// A pool reserves at most 1 / kRoomsPerAhead of the free budget, which other pools share.
constexpr uint64_t kRoomsPerAhead = 8;
// The minimum free space for a reservation ahead. A reservation that fails first takes all free
// space, and meanwhile the log cannot be written.
constexpr uint64_t kMinFreeBytes = 4 * kGrowBytes;

// Returns the free bytes of the file system that holds the open file, or UINT64_MAX if unknown.
uint64_t free_bytes(int descriptor) {
  struct statvfs room;
  if (::fstatvfs(descriptor, &room) != 0) return UINT64_MAX;
  return uint64_t{room.f_bavail} * room.f_frsize;
}

}  // namespace

std::string rows_path(const std::string& directory, uint32_t pool) {
  return directory + "/rows-" + std::to_string(pool);
}

RowFile::RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden)
    : row_bytes_(row_bytes),
      file_(path, O_RDWR | O_CREAT | (is_hidden ? O_EXCL : 0), /*is_past_cache=*/true) {
  num_bytes_ = file_.num_bytes();
  if (is_hidden) {
    remove_file(path);
  } else if (num_bytes_ == 0) {
    // Syncs the file's name, because a host crash would lose even synced rows without it.
    sync_folder_of(path);
  }
}

void RowFile::read(uint64_t row, std::byte* to) const {
  if (file_.read(row * row_bytes_, {to, row_bytes_}) < row_bytes_) refuse(row, "is truncated");
}

std::optional<uint32_t> RowFile::try_read(uint64_t row, std::byte* to) const {
  try {
    read(row, to);
    return crc32c({reinterpret_cast<const char*>(to), row_bytes_});
  } catch (const Error&) {
    return std::nullopt;
  }
}

void RowFile::write(uint64_t row, const std::byte* from, uint64_t room_bytes) {
  grow_to((row + 1) * row_bytes_, std::min(kGrowBytes, room_bytes / kRoomsPerAhead));
  file_.write(row * row_bytes_, {from, row_bytes_});
}

bool RowFile::try_grow() {
  uint64_t num_bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    num_bytes = num_bytes_ + row_bytes_;
  }
  try {
    if (grow_to(num_bytes, 0)) return true;
  } catch (const std::exception&) {
    return false;  // also reached if there is no memory for the Error
  }
  return free_bytes(file_.descriptor()) >= row_bytes_;
}

void RowFile::refuse(uint64_t row, const char* what) const {
  throw Error("store (row " + std::to_string(row) + " of " + file_.path() + " " + what +
              ") must be intact; check the disk");
}

bool RowFile::grow_to(uint64_t num_bytes, uint64_t ahead_bytes) {
  const std::scoped_lock lock(mutex_);
  if (num_bytes <= num_bytes_) return true;
  int reason = 0;
  if (free_bytes(file_.descriptor()) < kMinFreeBytes) ahead_bytes = 0;
  for (const uint64_t size : {num_bytes + ahead_bytes, num_bytes}) {
    reason = posix_fallocate(file_.descriptor(), static_cast<off_t>(num_bytes_),
                             static_cast<off_t>(size - num_bytes_));
    if (reason == 0) {
      num_bytes_ = size;
      return true;
    }
    if (!is_shortage(reason)) return false;  // a write will report it
  }
  refuse_file(file_.path(), "has no space", reason);
}

}  // namespace tengen::store
