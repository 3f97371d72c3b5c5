#pragma once
// Files that must survive the loss of the host, and a hook by which a test learns what would
// survive.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tengen::store {

// Is told of all that happens to such files, in order, by any thread.
class DiskWatch {
 public:
  virtual ~DiskWatch() = default;
  virtual void made(const std::string& path) = 0;
  virtual void written(const std::string& path, uint64_t offset,
                       std::span<const std::byte> bytes) = 0;
  virtual void cut(const std::string& path, uint64_t num_bytes) = 0;
  virtual void synced(const std::string& path) = 0;
  virtual void renamed(const std::string& from, const std::string& to) = 0;
  virtual void removed(const std::string& path) = 0;
  virtual void folder_synced(const std::string& directory) = 0;
};

// Sets the hook, for tests; null: none. Not while files are in use.
void set_disk_watch(DiskWatch* watch);

// Such a file, open to be written. A call that can fail returns whether it succeeded; errno says
// why it failed. Several threads may write, where their ranges do not overlap.
class DiskFile {
 public:
  // `flags` are those of open(); is_open() says whether that succeeded. With `is_past_cache` reads
  // and writes go past the system's cache, where the file system can.
  DiskFile(std::string path, int flags, bool is_past_cache = false);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // Writes all the bytes.
  bool write(uint64_t offset, std::span<const std::byte> bytes) const;
  bool cut(uint64_t num_bytes) const;
  // Blocks until the bytes that were written survive the loss of the host; the file's name needs
  // sync_folder().
  bool sync() const;

 private:
  const std::string path_;
  int descriptor_;
};

// The bytes of a file from `begin` to `end`, or to the file's end. Read and not mapped, as a
// mapping of bytes that the disk cannot read ends the process that touches it. Throws Error.
std::vector<std::byte> read_file(const std::string& path, uint64_t begin = 0,
                                 uint64_t end = UINT64_MAX);

bool rename_file(const std::string& from, const std::string& to);
// Does nothing where there is no such file.
void remove_file(const std::string& path);
// Blocks until files that were made, renamed or removed in the folder stay so where the host is
// lost. Throws Error.
void sync_folder(const std::string& directory);

}  // namespace tengen::store
