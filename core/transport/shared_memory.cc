#include "transport/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tengen::transport {
namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int reason) {
  const char* advice = "; check that the folder exists and is yours";
  if (reason == ENOMEM) advice = "; request less at once, or raise ulimit -v";
  if (reason == EMFILE || reason == ENFILE) advice = "; close others, or raise ulimit -n";
  const std::string message =
      "shared memory (" + path + ") " + action + ": " + std::strerror(reason) + advice;
  if (reason == ENOMEM || reason == EMFILE || reason == ENFILE) throw ShortageError(message);
  throw Error(message);
}

[[noreturn]] void fail_for_room(const std::string& path, uint64_t num_bytes) {
  throw Error("shared memory (" + path + ") needs " +
              std::to_string((num_bytes + (1 << 20) - 1) >> 20) +
              " MiB, more than its file system has free; lower memory_bytes, or enlarge it: "
              "mount -o remount,size=... /dev/shm, docker run --shm-size=...");
}

// Throws the Error for the errno of a failed allocation of file blocks.
[[noreturn]] void fail_to_reserve(const std::string& path, uint64_t num_bytes) {
  const int reason = errno;
  if (reason == ENOSPC || reason == EFBIG || reason == ENOMEM) fail_for_room(path, num_bytes);
  fail(path, "cannot be reserved", reason);
}

constexpr uint64_t kHugePage = uint64_t{2} << 20;
// Bytes reserved per call. A call is much shorter than the time between two signals.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;

// Allocates the pages of a file, so that a write never raises SIGBUS. Returns 0 or an errno.
int reserve(int descriptor, uint64_t num_bytes) {
  // Reserves in chunks: if a signal interrupts a call, the system undoes that call.
  for (uint64_t done = 0; done < num_bytes;) {
    const uint64_t piece = std::min(kPieceBytes, num_bytes - done);
    const int reason =
        posix_fallocate(descriptor, static_cast<off_t>(done), static_cast<off_t>(piece));
    if (reason == 0) {
      done += piece;
    } else if (reason != EINTR) {
      return reason;
    }
  }
  return 0;
}

// Maps a file of `num_bytes`, or anonymous memory if `descriptor` is -1. A large mapping is aligned
// to huge pages, so that each huge page of the file needs only one page table entry.
std::byte* map(const std::string& path, int descriptor, uint64_t num_bytes) {
  const int kind = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* data = MAP_FAILED;
  if (num_bytes < kHugePage) {
    data = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, kind, descriptor, 0);
  } else {
    const uint64_t wide_bytes = num_bytes + kHugePage;
    void* wide = mmap(nullptr, wide_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED) fail(path, "cannot be mapped", errno);
    auto* const begin = static_cast<std::byte*>(wide);
    std::byte* const aligned = begin + -reinterpret_cast<uintptr_t>(wide) % kHugePage;
    data = mmap(aligned, num_bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED, descriptor, 0);
    // Unmaps the unused complete pages at both ends.
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    std::byte* const end =
        data == MAP_FAILED ? begin : aligned + (num_bytes + page - 1) / page * page;
    if (data != MAP_FAILED && aligned > begin) munmap(begin, static_cast<size_t>(aligned - begin));
    if (end < begin + wide_bytes) munmap(end, static_cast<size_t>(begin + wide_bytes - end));
  }
  if (data == MAP_FAILED) fail(path, "cannot be mapped", errno);
#if defined(MADV_HUGEPAGE)
  madvise(data, num_bytes, MADV_HUGEPAGE);  // a hint, which some kernels reject
#endif
  return static_cast<std::byte*>(data);
}

// Backs a new file in tmpfs with huge pages if the system supports them. By default, tmpfs uses
// huge pages only if it is mounted with this option.
void make_huge_pages(int descriptor, std::byte* data, uint64_t num_bytes) {
#if !defined(MADV_COLLAPSE)
  constexpr int MADV_COLLAPSE = 25;  // from Linux 6.1 on
#endif
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0 || status.f_type != TMPFS_MAGIC) return;
  // Allocates one byte per huge page, because MADV_COLLAPSE needs existing pages.
  for (uint64_t begin = 0; begin + kHugePage <= num_bytes; begin += kHugePage) {
    if (posix_fallocate(descriptor, static_cast<off_t>(begin), 1) != 0) return;
  }
  // Excludes the last bytes, which do not fill a huge page.
  madvise(data, num_bytes / kHugePage * kHugePage, MADV_COLLAPSE);
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

// Unlinks the file at `path` in its destructor.
class Removal {
 public:
  explicit Removal(const std::string& path) : path_(path) {}
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  ~Removal() { ::unlink(path_.c_str()); }

 private:
  const std::string& path_;
};

}  // namespace

SharedMemory SharedMemory::create(const std::string& path, uint64_t num_bytes) {
  // The file is written as `.part` and then linked, so that it is complete or does not exist even
  // if this process is killed. An old `.part` may be a second name of memory in use, so it is
  // unlinked and never truncated.
  const std::string part = path + ".part";
  ::unlink(part.c_str());
  const Descriptor file(::open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) fail(path, "cannot be created", errno);
  const Removal removal(part);
  if (ftruncate(file.get(), static_cast<off_t>(num_bytes)) != 0) fail_to_reserve(path, num_bytes);
  SharedMemory made(path, map(path, file.get(), num_bytes), num_bytes);
  make_huge_pages(file.get(), made.data(), num_bytes);
  errno = reserve(file.get(), num_bytes);
  if (errno != 0) fail_to_reserve(path, num_bytes);
  if (::link(part.c_str(), path.c_str()) != 0) fail(path, "cannot be created", errno);
  return made;
}

SharedMemory SharedMemory::adopt(const std::string& path, uint64_t num_bytes) {
  if (::access(path.c_str(), F_OK) != 0) return create(path, num_bytes);
  SharedMemory there = open(path);
  if (there.num_bytes() != num_bytes) fail(path, "has another size", EINVAL);
  return there;
}

SharedMemory SharedMemory::open(const std::string& path, uint64_t min_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be opened", errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) fail(path, "cannot be read", errno);
  const uint64_t num_bytes = static_cast<uint64_t>(status.st_size);
  if (num_bytes < min_bytes) {
    throw Error("shared memory (" + path + ", " + std::to_string(num_bytes) + " bytes) must have " +
                std::to_string(min_bytes) +
                "; it belongs to another store, so connect again, or choose another folder");
  }
  // Allocates missing pages, because a copied file may have holes.
  if (static_cast<uint64_t>(status.st_blocks) * 512 < num_bytes) {
    errno = reserve(file.get(), num_bytes);
    if (errno != 0) fail_to_reserve(path, num_bytes);
  }
  SharedMemory there(path, map(path, file.get(), num_bytes), num_bytes);
#if defined(MADV_POPULATE_WRITE)
  // Mapping all existing pages in one call is much cheaper than one page fault per page.
  madvise(there.data(), num_bytes, MADV_POPULATE_WRITE);
#endif
  return there;
}

SharedMemory SharedMemory::unnamed(int descriptor, uint64_t num_bytes) {
  return {"", map("unnamed", descriptor, num_bytes), num_bytes};
}

void SharedMemory::check_room(const std::string& directory, uint64_t num_bytes) {
  struct statvfs status;
  if (statvfs(directory.c_str(), &status) != 0) fail(directory, "cannot be measured", errno);
  // A file system without a size limit reports 0 blocks, so it always has enough space.
  if (status.f_blocks != 0 && uint64_t{status.f_bavail} * status.f_frsize < num_bytes) {
    fail_for_room(directory, num_bytes);
  }
}

SharedMemory SharedMemory::anonymous(uint64_t num_bytes) {
  return {"", map("anonymous", -1, num_bytes), num_bytes};
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

}  // namespace tengen::transport
