#include "store/disk/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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

// By errno.
[[noreturn]] void fail(const std::string& path, const char* action, const char* advice) {
  const int reason = errno;
  const bool has_no_descriptor = reason == EMFILE || reason == ENFILE;
  const std::string message = "file (" + path + ") " + action + ": " + std::strerror(reason) +
                              (has_no_descriptor ? "; raise ulimit -n" : advice);
  // A limit on the size of files may be raised.
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) throw DiskFullError(message);
  if (has_no_descriptor || reason == ENOMEM) throw ShortageError(message);
  throw Error(message);
}

}  // namespace

void set_disk_watch(DiskWatch* whose) { watch = whose; }

DiskFile::DiskFile(std::string path, int flags, bool is_past_cache) : path_(std::move(path)) {
  const bool is_new = watch != nullptr && ::access(path_.c_str(), F_OK) != 0;
  descriptor_ = open_file(path_.c_str(), flags | O_CLOEXEC, is_past_cache);
  if (descriptor_ < 0) {
    const bool is_full = errno == ENOSPC || errno == EDQUOT;
    fail(path_, "cannot be opened",
         is_full ? "; free room in its file system" : "; choose a folder on a disk that is yours");
  }
  if (watch == nullptr) return;
  if (is_new) watch->made(path_);
  if ((flags & O_TRUNC) != 0) watch->cut(path_, 0);
}

DiskFile::~DiskFile() { ::close(descriptor_); }

uint64_t DiskFile::num_bytes() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) fail(path_, "cannot be read", "; look after the disk");
  return static_cast<uint64_t>(status.st_size);
}

uint64_t DiskFile::read(uint64_t offset, std::span<std::byte> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t count =
        ::pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, "cannot be read", "; look after the disk");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void DiskFile::write(uint64_t offset, std::span<const std::byte> bytes) const {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, "cannot be written", "; free room in its file system");
    done += static_cast<size_t>(count);
  }
  if (watch != nullptr) watch->written(path_, offset, bytes);
}

void DiskFile::sync() const {
  if (::fdatasync(descriptor_) != 0) fail(path_, "cannot be synced", "; look after the disk");
  if (watch != nullptr) watch->synced(path_);
}

std::vector<std::byte> read_file(const std::string& path) {
  const DiskFile file(path, O_RDONLY);
  std::vector<std::byte> bytes(file.num_bytes());
  bytes.resize(file.read(0, bytes));
  return bytes;
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail(to, "cannot be written", "; free room in its file system");
  }
  if (watch != nullptr) watch->renamed(from, to);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 && watch != nullptr) watch->removed(path);
}

void sync_folder(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(directory, "cannot be synced", "; choose another disk_directory");
  const bool is_good = ::fsync(descriptor) == 0;
  ::close(descriptor);
  check(is_good, "disk_directory", directory,
        "must be a folder that can be synced; choose another");
  if (watch != nullptr) watch->folder_synced(directory);
}

}  // namespace tengen::store
