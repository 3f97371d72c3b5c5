#pragma once
// Files that must survive a host crash, and a hook for tests that observes their changes. Tested
// only on Linux.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tengen {

// Observes all changes to files of type DiskFile, in order, on the thread that makes the change. If
// an observer throws, the call on the file throws the same exception.
class DiskWatch {
 public:
  virtual ~DiskWatch() = default;
  virtual void made(const std::string& /*path*/) {}
  virtual void written(const std::string& /*path*/, uint64_t /*offset*/,
                       std::span<const std::byte> /*bytes*/) {}
  virtual void cut(const std::string& /*path*/, uint64_t /*num_bytes*/) {}
  virtual void synced(const std::string& /*path*/) {}
  virtual void renamed(const std::string& /*from*/, const std::string& /*to*/) {}
  virtual void removed(const std::string& /*path*/) {}
  virtual void folder_synced(const std::string& /*directory*/) {}
};

// Sets the observer of all disk files, for tests, or null. Not while files are in use.
void set_disk_watch(DiskWatch* watch);

// Whether the errno `reason` means that a disk, a quota, a limit or the memory leaves no space.
bool is_shortage(int reason);
// Throws the Error for a failed `action` on a file or folder, with errno `reason`: DiskFullError,
// ShortageError or another Error.
[[noreturn]] void refuse_file(const std::string& path, const char* action, int reason);

// An open file that must survive a host crash. A call that fails throws Error with the reason.
// Several threads may write if their ranges do not overlap. Forked processes do not inherit it.
class DiskFile {
 public:
  // `flags` and `mode` are those of open(). With `is_past_cache`, reads and writes bypass the page
  // cache if the file system supports that.
  DiskFile(std::string path, int flags, bool is_past_cache = false, int mode = 0600);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  uint64_t num_bytes() const;
  // Reads bytes into `to`, starting at `offset`. Returns the number of bytes read, which is less
  // than the size of `to` only at the end of the file.
  uint64_t read(uint64_t offset, std::span<std::byte> to) const;
  // Writes all `bytes` at `offset`.
  void write(uint64_t offset, std::span<const std::byte> bytes) const;
  // Blocks until all written bytes would survive a host crash. The file's name survives only after
  // sync_folder_of().
  void sync() const;
  // Renames the file to `to`, which may exist. The new name survives only after sync_folder_of().
  void rename(const std::string& to);

 private:
  std::string path_;
  int descriptor_;
};

// Returns the contents of a file. Reads the file instead of mapping it, because a process that
// touches a mapped byte that the disk cannot read is killed. Throws Error.
std::vector<std::byte> read_file(const std::string& path);

// Creates a file that is either complete or absent under its name: `fill` writes it under a
// temporary name. With `is_synced`, the file and its name survive a host crash. Returns the file.
// Throws Error.
std::unique_ptr<DiskFile> make_whole_file(const std::string& path, bool is_synced,
                                          const std::function<void(const DiskFile&)>& fill);

// Removes a file. Does nothing if the file does not exist.
void remove_file(const std::string& path);
// Blocks until all creations, renames and removals of files in the folder of `path` would survive
// a host crash. Throws Error.
void sync_folder_of(const std::string& path);

}  // namespace tengen
