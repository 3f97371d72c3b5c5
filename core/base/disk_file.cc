#include "base/disk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/owned.h"

namespace tengen {
namespace {

DiskWatch* watch = nullptr;

// Opens a file that forked processes do not inherit. Otherwise a forked process would keep the
// space of a removed file occupied.
int open_file(const char* path, int flags, bool is_past_cache, int mode) {
#if defined(O_DIRECT)
  const int direct = is_past_cache ? open_owned(path, flags | O_DIRECT, mode) : -1;
  if (direct >= 0 || (is_past_cache && errno != EINVAL)) return direct;
#endif
  const int descriptor = open_owned(path, flags, mode);
#if defined(F_NOCACHE)
  if (descriptor >= 0 && is_past_cache) fcntl(descriptor, F_NOCACHE, 1);
#endif
  return descriptor;
}

// Returns the advice for the user about the errno `reason`.
const char* advice_for(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return "free space in its file system";
    case EFBIG:
      return "raise ulimit -f, or choose a file system with larger files";
    case EMFILE:
    case ENFILE:
      return "raise ulimit -n";
    case ENOMEM:
      return "free memory";
    case EACCES:
    case EPERM:
    case EROFS:
      return "make it writable, or choose another folder";
    case ENOENT:
    case ENOTDIR:
      return "restore it, or choose another folder";
    case EINVAL:
    case EOPNOTSUPP:
      return "choose a folder in another file system";
    default:
      return "check the disk";
  }
}

}  // namespace

bool is_shortage(int reason) {
  // EFBIG counts, because the user may raise the limit on file sizes.
  return reason == ENOSPC || reason == EDQUOT || reason == EFBIG || reason == EMFILE ||
         reason == ENFILE || reason == ENOMEM;
}

void refuse_file(const std::string& path, const char* action, int reason) {
  const std::string message =
      "file (" + path + ") " + action + ": " + std::strerror(reason) + "; " + advice_for(reason);
  if (reason == ENOSPC || reason == EDQUOT) throw DiskFullError(message);
  if (is_shortage(reason)) throw ShortageError(message);
  throw Error(message);
}

void set_disk_watch(DiskWatch* whose) { watch = whose; }

DiskFile::DiskFile(std::string path, int flags, bool is_past_cache, int mode)
    : path_(std::move(path)) {
  const bool is_new = watch != nullptr && ::access(path_.c_str(), F_OK) != 0;
  descriptor_ = open_file(path_.c_str(), flags, is_past_cache, mode);
  if (descriptor_ < 0) refuse_file(path_, "cannot be opened", errno);
  if (watch == nullptr) return;
  if (is_new) watch->made(path_);
  if ((flags & O_TRUNC) != 0) watch->cut(path_, 0);
}

DiskFile::~DiskFile() {
  // Not close_owned(), whose lock stops every fork: a close may write to a slow disk.
  disown_descriptor(descriptor_);
  ::close(descriptor_);
}

uint64_t DiskFile::num_bytes() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) refuse_file(path_, "cannot be read", errno);
  return static_cast<uint64_t>(status.st_size);
}

uint64_t DiskFile::read(uint64_t offset, std::span<std::byte> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t count =
        ::pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_file(path_, "cannot be read", errno);
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
    if (count < 0) refuse_file(path_, "cannot be written", errno);
    done += static_cast<size_t>(count);
  }
  if (watch != nullptr) watch->written(path_, offset, bytes);
}

void DiskFile::sync() const {
  const int result = ::fdatasync(descriptor_);
  if (result != 0) refuse_file(path_, "cannot be synced", errno);
  if (watch != nullptr) watch->synced(path_);
}

void DiskFile::rename(const std::string& to) {
  if (std::rename(path_.c_str(), to.c_str()) != 0) refuse_file(to, "cannot be written", errno);
  if (watch != nullptr) watch->renamed(path_, to);
  path_ = to;
}

std::vector<std::byte> read_file(const std::string& path) {
  const DiskFile file(path, O_RDONLY);
  std::vector<std::byte> bytes(file.num_bytes());
  bytes.resize(file.read(0, bytes));
  return bytes;
}

std::unique_ptr<DiskFile> make_whole_file(const std::string& path, bool is_synced,
                                          const std::function<void(const DiskFile&)>& fill) {
  const std::string part = path + ".part";
  auto file = std::make_unique<DiskFile>(part, O_WRONLY | O_CREAT | O_TRUNC);
  try {
    fill(*file);
    if (is_synced) file->sync();
    file->rename(path);
  } catch (...) {
    remove_file(part);  // it occupies space that the next attempt needs
    throw;
  }
  if (is_synced) sync_folder_of(path);
  return file;
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 && watch != nullptr) watch->removed(path);
}

void sync_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) refuse_file(directory, "cannot be synced", errno);
  const int reason = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (reason != 0) refuse_file(directory, "cannot be synced", reason);
  if (watch != nullptr) watch->folder_synced(directory);
}

}  // namespace tengen
