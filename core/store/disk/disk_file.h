#pragma once
// Files that must survive the loss of the host, and a hook by which a test learns what would
// survive.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tengen::store {

// Is told of all that happens to such files, in order, by any thread. A call on a file throws what
// its watch throws.
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

// Sets the hook, for tests; null: none. Not while files are in use.
void set_disk_watch(DiskWatch* watch);

// Whether this errno says that a disk, a quota or a limit leaves no room.
bool is_for_room(int reason);
// Throws the Error of a file or folder with which the system did not do what was asked of it, for
// this errno: DiskFullError, ShortageError or another Error.
[[noreturn]] void refuse_file(const std::string& path, const char* action, int reason);

// Such a file, open. A call that fails throws Error, which says why. Several threads may write,
// where their ranges do not overlap. A forked process has no part in it.
class DiskFile {
 public:
  // `flags` are those of open(). With `is_past_cache` reads and writes go past the system's cache,
  // where the file system can.
  DiskFile(std::string path, int flags, bool is_past_cache = false);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  uint64_t num_bytes() const;
  // Returns how many of the bytes from `offset` on were read: fewer than asked for where the file
  // ends.
  uint64_t read(uint64_t offset, std::span<std::byte> to) const;
  // Writes all the bytes.
  void write(uint64_t offset, std::span<const std::byte> bytes) const;
  // Blocks until the bytes that were written survive the loss of the host; the file's name needs
  // sync_folder().
  void sync() const;

 private:
  const std::string path_;
  int descriptor_;
};

// The bytes of a file. Read and not mapped, as a mapping of bytes that the disk cannot read ends
// the process that touches it. Throws Error.
std::vector<std::byte> read_file(const std::string& path);

// Makes a file that is whole under its name, or not there: `fill` writes it under another name.
// With `is_synced` it survives the loss of the host, and so does its name. Returns the file; throws
// Error.
std::unique_ptr<DiskFile> make_whole_file(const std::string& path, bool is_synced,
                                          const std::function<void(const DiskFile&)>& fill);

// Throws Error.
void rename_file(const std::string& from, const std::string& to);
// Does nothing where there is no such file.
void remove_file(const std::string& path);
// Blocks until files that were made, renamed or removed in the folder stay so where the host is
// lost. Throws Error.
void sync_folder(const std::string& directory);

}  // namespace tengen::store
