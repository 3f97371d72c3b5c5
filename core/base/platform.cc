#include "base/platform.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <utility>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#else
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "base/error.h"

namespace tengen {
namespace {

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  const int code = errno;
#ifdef EDQUOT
  const bool is_full = code == ENOSPC || code == EDQUOT;
#else
  const bool is_full = code == ENOSPC;
#endif
  const char* advice = is_full || code == EFBIG ? "free some space and resume"
                                                : "check the path, the disk and the permissions";
  const std::string message =
      "file (" + path + ") could not " + action + ": " + std::strerror(code) + "; " + advice;
  if (is_full) throw DiskFullError(message);
  throw Error(message);
}

#ifdef _WIN32
constexpr int kCreate = _O_RDWR | _O_CREAT | _O_TRUNC | _O_BINARY;
constexpr int kRead = _O_RDONLY | _O_BINARY;
int open_descriptor(const char* path, int flags) {
  return _open(path, flags, _S_IREAD | _S_IWRITE);
}
int close_descriptor(int descriptor) { return _close(descriptor); }
int64_t seek_end(int descriptor) { return _lseeki64(descriptor, 0, SEEK_END); }
// A File is single-threaded, so seek and read need not be atomic.
int64_t read_at(int descriptor, char* out, size_t num_bytes, uint64_t offset) {
  if (_lseeki64(descriptor, static_cast<int64_t>(offset), SEEK_SET) < 0) return -1;
  return _read(descriptor, out, static_cast<unsigned>(num_bytes));
}
int64_t write_at(int descriptor, const char* bytes, size_t num_bytes, uint64_t offset) {
  if (_lseeki64(descriptor, static_cast<int64_t>(offset), SEEK_SET) < 0) return -1;
  return _write(descriptor, bytes, static_cast<unsigned>(num_bytes));
}
int sync_descriptor(int descriptor) { return _commit(descriptor); }
#else
constexpr int kCreate = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
constexpr int kRead = O_RDONLY | O_CLOEXEC;
int open_descriptor(const char* path, int flags) { return ::open(path, flags, 0666); }
int close_descriptor(int descriptor) { return ::close(descriptor); }
int64_t seek_end(int descriptor) {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 ? static_cast<int64_t>(status.st_size) : -1;
}
int64_t read_at(int descriptor, char* out, size_t num_bytes, uint64_t offset) {
  return ::pread(descriptor, out, num_bytes, static_cast<off_t>(offset));
}
int64_t write_at(int descriptor, const char* bytes, size_t num_bytes, uint64_t offset) {
  return ::pwrite(descriptor, bytes, num_bytes, static_cast<off_t>(offset));
}
int sync_descriptor(int descriptor) {
#ifdef __APPLE__
  return ::fcntl(descriptor, F_FULLFSYNC);  // fsync() on macOS does not flush the cache of the disk
#else
  return ::fdatasync(descriptor);
#endif
}
#endif

constexpr uint64_t kMaxTransfer = uint64_t{1} << 30;  // systems limit a read() to 2 GiB

}  // namespace

File File::create(const std::string& path) {
  const int descriptor = open_descriptor(path.c_str(), kCreate);
  if (descriptor < 0) fail_with_errno(path, "be created");
  return File(path, descriptor);
}

File File::open_to_read(const std::string& path) {
  const int descriptor = open_descriptor(path.c_str(), kRead);
  if (descriptor < 0) fail_with_errno(path, "be opened");
  return File(path, descriptor);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File::~File() {
  if (descriptor_ >= 0) close_descriptor(descriptor_);
}

void File::fail(const char* action) const { fail_with_errno(path_, action); }

uint64_t File::size_bytes() const {
  const int64_t size = seek_end(descriptor_);
  if (size < 0) fail("be measured");
  return static_cast<uint64_t>(size);
}

std::string File::read(uint64_t offset, uint64_t num_bytes) const {
  std::string bytes(num_bytes, '\0');
  uint64_t done = 0;
  while (done < num_bytes) {
    const size_t wanted = std::min<uint64_t>(num_bytes - done, kMaxTransfer);
    const int64_t got = read_at(descriptor_, bytes.data() + done, wanted, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("be read");
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void File::write(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const int64_t put =
        write_at(descriptor_, bytes.data(), std::min<uint64_t>(bytes.size(), kMaxTransfer), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("be written");
    offset += static_cast<uint64_t>(put);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

void File::sync() {
  if (sync_descriptor(descriptor_) != 0) fail("be synced");
}

void File::rename_durably(const std::string& to) {
  std::error_code error;
  std::filesystem::rename(path_, to, error);
  if (error) {
    errno = error.value();
    fail_with_errno(to, "be renamed into place");
  }
  path_ = to;
#ifndef _WIN32  // Windows cannot sync a directory, but its file system journals renames
  const std::filesystem::path parent = std::filesystem::path(to).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno(directory, "be opened");
  const bool ok = ::fsync(descriptor) == 0;
  const int code = errno;
  ::close(descriptor);
  errno = code;
  if (!ok) fail_with_errno(directory, "be synced");
#endif
}

uint64_t random_number() {
#ifdef _WIN32
  std::random_device device;
  return uint64_t{device()} << 32 | device();
#else
  // std::random_device would need a newer C library than the rest of the core.
  uint64_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0) {
    throw Error(std::string("randomness (of the system) cannot be read: ") + std::strerror(errno) +
                "; allow getrandom");
  }
  return number;
#endif
}

void kill_self() {
#ifndef _WIN32
  ::kill(::getpid(), SIGKILL);
#endif
  std::_Exit(137);
}

}  // namespace tengen
