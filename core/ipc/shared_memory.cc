#include "ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tengen::ipc {
namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int reason) {
  throw Error("shared memory (" + path + ") " + action + ": " + std::strerror(reason) +
              "; see that the folder is there and yours");
}

[[noreturn]] void fail_for_room(const std::string& path, uint64_t num_bytes) {
  throw Error("shared memory (" + path + ") needs " +
              std::to_string((num_bytes + (1 << 20) - 1) >> 20) +
              " MiB, more than its file system has free; lower memory_bytes, or enlarge it: "
              "mount -o remount,size=... /dev/shm, docker run --shm-size=...");
}

// Reserves every page, so that writing never ends in SIGBUS.
int reserve(int descriptor, uint64_t num_bytes) {
#if defined(__APPLE__)
  return ftruncate(descriptor, static_cast<off_t>(num_bytes)) == 0 ? 0 : errno;
#else
  return posix_fallocate(descriptor, 0, static_cast<off_t>(num_bytes));
#endif
}

std::byte* map(const std::string& path, int descriptor, uint64_t num_bytes, int flags) {
  void* data = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (data == MAP_FAILED) fail(path, "cannot be mapped", errno);
#if defined(MADV_HUGEPAGE)
  madvise(data, num_bytes, MADV_HUGEPAGE);  // a hint, which some kernels do not take
#endif
  return static_cast<std::byte*>(data);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

SharedMemory SharedMemory::create(const std::string& path, uint64_t num_bytes) {
  // Whole under its name or not there, whatever instant this process is killed at.
  const std::string part = path + ".part";
  const Descriptor file(::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) fail(path, "cannot be made", errno);
  int reason = reserve(file.get(), num_bytes);
  if (reason == 0 && ::link(part.c_str(), path.c_str()) != 0) {
    reason = errno;
    ::unlink(part.c_str());
    fail(path, "cannot be made", reason);
  }
  ::unlink(part.c_str());
  if (reason != 0) {
    if (reason == ENOSPC || reason == EFBIG || reason == ENOMEM) fail_for_room(path, num_bytes);
    fail(path, "cannot be reserved", reason);
  }
  return {path, map(path, file.get(), num_bytes, MAP_SHARED), num_bytes};
}

SharedMemory SharedMemory::adopt(const std::string& path, uint64_t num_bytes) {
  if (::access(path.c_str(), F_OK) != 0) return create(path, num_bytes);
  SharedMemory there = open(path);
  if (there.num_bytes() != num_bytes) fail(path, "is of another size", EINVAL);
  return there;
}

SharedMemory SharedMemory::open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be opened", errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) fail(path, "cannot be read", errno);
  const uint64_t num_bytes = static_cast<uint64_t>(status.st_size);
  if (num_bytes == 0) fail(path, "is empty", EINVAL);
  std::byte* data = map(path, file.get(), num_bytes, MAP_SHARED);
#if defined(MADV_POPULATE_WRITE)
  // The pages are there; to map them all at once costs a fraction of a fault each.
  madvise(data, num_bytes, MADV_POPULATE_WRITE);
#endif
  return {path, data, num_bytes};
}

void SharedMemory::check_room(const std::string& directory, uint64_t num_bytes) {
  struct statvfs status;
  if (statvfs(directory.c_str(), &status) != 0) fail(directory, "cannot be measured", errno);
  // One without a bound has no blocks.
  if (status.f_blocks != 0 && uint64_t{status.f_bavail} * status.f_frsize < num_bytes) {
    fail_for_room(directory, num_bytes);
  }
}

SharedMemory SharedMemory::anonymous(uint64_t num_bytes) {
  return {"", map("anonymous", -1, num_bytes, MAP_PRIVATE | MAP_ANONYMOUS), num_bytes};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, num_bytes_);
}

}  // namespace tengen::ipc
