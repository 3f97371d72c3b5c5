#include "store/disk/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/error.h"

namespace tengen::store {
namespace {

DiskWatch* watch = nullptr;

int open_file(const char* path, int flags, bool is_past_cache) {
#if defined(O_DIRECT)
  const int direct = is_past_cache ? ::open(path, flags | O_DIRECT, 0600) : -1;
  if (direct >= 0 || (is_past_cache && errno != EINVAL)) return direct;
#endif
  const int descriptor = ::open(path, flags, 0600);
#if defined(F_NOCACHE)
  if (descriptor >= 0 && is_past_cache) fcntl(descriptor, F_NOCACHE, 1);
#endif
  return descriptor;
}

}  // namespace

void set_disk_watch(DiskWatch* whose) { watch = whose; }

DiskFile::DiskFile(std::string path, int flags, bool is_past_cache) : path_(std::move(path)) {
  const bool is_new = watch != nullptr && ::access(path_.c_str(), F_OK) != 0;
  descriptor_ = open_file(path_.c_str(), flags | O_CLOEXEC, is_past_cache);
  if (watch == nullptr || !is_open()) return;
  if (is_new) watch->made(path_);
  if ((flags & O_TRUNC) != 0) watch->cut(path_, 0);
}

DiskFile::~DiskFile() {
  if (is_open()) ::close(descriptor_);
}

bool DiskFile::write(uint64_t offset, std::span<const std::byte> bytes) const {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<size_t>(count);
  }
  if (watch != nullptr) watch->written(path_, offset, bytes);
  return true;
}

bool DiskFile::cut(uint64_t num_bytes) const {
  if (::ftruncate(descriptor_, static_cast<off_t>(num_bytes)) != 0) return false;
  if (watch != nullptr) watch->cut(path_, num_bytes);
  return true;
}

bool DiskFile::sync() const {
  if (::fdatasync(descriptor_) != 0) return false;
  if (watch != nullptr) watch->synced(path_);
  return true;
}

std::vector<std::byte> read_file(const std::string& path, uint64_t begin, uint64_t end) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  bool is_good = descriptor >= 0 && fstat(descriptor, &status) == 0;
  std::vector<std::byte> bytes;
  if (is_good) {
    end = std::min(end, static_cast<uint64_t>(status.st_size));
    bytes.resize(end - std::min(begin, end));
  }
  for (size_t done = 0; is_good && done < bytes.size();) {
    const ssize_t count = ::pread(descriptor, bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    is_good = count > 0;
    done += is_good ? static_cast<size_t>(count) : 0;
  }
  if (descriptor >= 0) ::close(descriptor);
  check(is_good, "file", path, "must be one that can be read; look after the disk");
  return bytes;
}

bool rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return false;
  if (watch != nullptr) watch->renamed(from, to);
  return true;
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 && watch != nullptr) watch->removed(path);
}

void sync_folder(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_good = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  check(is_good, "disk_directory", directory,
        "must be a folder that can be synced; choose another");
  if (watch != nullptr) watch->folder_synced(directory);
}

}  // namespace tengen::store
