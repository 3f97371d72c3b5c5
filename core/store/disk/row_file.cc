#include "store/disk/row_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

namespace tengen::store {
namespace {

// Reserved at once, so that the file system finds long runs and rows do not wait for its journal.
constexpr uint64_t kGrowBytes = uint64_t{64} << 20;

}  // namespace

std::string rows_path(const std::string& directory, uint32_t pool) {
  return directory + "/rows-" + std::to_string(pool);
}

RowFile::RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden)
    : row_bytes_(row_bytes),
      file_(path, O_RDWR | O_CREAT | (is_hidden ? O_EXCL : 0), /*is_past_cache=*/true) {
  struct stat status;
  if (!file_.is_open() || fstat(file_.descriptor(), &status) != 0) {
    throw Error("disk_directory (" + path + ") cannot hold the store's rows: " +
                std::strerror(errno) + "; choose a folder on a disk that is yours");
  }
  if (is_hidden) {
    remove_file(path);
  } else if (status.st_size == 0) {
    // Without its name, rows that are synced would be lost with the host.
    sync_folder(std::filesystem::path(path).parent_path());
  }
  num_bytes_ = static_cast<uint64_t>(status.st_size);
}

std::string RowFile::read(uint64_t row, std::byte* to) const {
  for (uint64_t done = 0; done < row_bytes_;) {
    const ssize_t count = pread(file_.descriptor(), to + done, row_bytes_ - done,
                                static_cast<off_t>(row * row_bytes_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return name_of(row) + " cannot be read: " + std::strerror(errno);
    if (count == 0) return name_of(row) + " is cut short";
    done += static_cast<uint64_t>(count);
  }
  return "";
}

std::string RowFile::write(uint64_t row, const std::byte* from) {
  const std::string reason = grow_to(row + 1);
  if (!reason.empty()) return reason;
  if (file_.write(row * row_bytes_, {from, row_bytes_})) return "";
  return name_of(row) + " cannot be written: " + std::strerror(errno);
}

std::string RowFile::sync() {
  if (file_.sync()) return "";
  return file_.path() + " cannot be synced: " + std::strerror(errno);
}

std::string RowFile::name_of(uint64_t row) const {
  return "row " + std::to_string(row) + " of " + file_.path();
}

std::string RowFile::grow_to(uint64_t num_rows) {
  const std::scoped_lock lock(mutex_);
  const uint64_t needed = num_rows * row_bytes_;
  if (needed <= num_bytes_) return "";
#if defined(__linux__)
  for (const uint64_t size : {std::max(needed, num_bytes_ + kGrowBytes), needed}) {
    const int reason = posix_fallocate(file_.descriptor(), static_cast<off_t>(num_bytes_),
                                       static_cast<off_t>(size - num_bytes_));
    if (reason == 0) {
      num_bytes_ = size;
      return "";
    }
    if (reason != ENOSPC) break;  // the write will fail and tell why
    if (size == needed) return name_of(num_rows - 1) + " has no room: " + std::strerror(reason);
  }
#endif
  return "";
}

}  // namespace tengen::store
