#pragma once
// Files that are to be there where a host is lost, and the seam at which a test learns what would.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tengen::store {

// Told of all that happens to such files, in its order; by any thread.
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

// For tests; null: nobody is told. Not while files are in use.
void set_disk_watch(DiskWatch* watch);

// One of them, open to be written. What can fail returns whether it did not; errno says why. Of
// several threads, where what they write does not overlap.
class DiskFile {
 public:
  // `flags` are those of open(); is_open() says whether it is. With `is_past_cache` it is read and
  // written past the system's cache, where the file system can.
  DiskFile(std::string path, int flags, bool is_past_cache = false);
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // All of it.
  bool write(uint64_t offset, std::span<const std::byte> bytes) const;
  bool cut(uint64_t num_bytes) const;
  // What was written is there where the host is lost, if its name is; blocks.
  bool sync() const;

 private:
  const std::string path_;
  int descriptor_;
};

// What a file has from `begin` to `end`, or to its end. By reads, as a mapping of what the disk
// cannot give ends the process that looks at it. Throws Error.
std::vector<std::byte> read_file(const std::string& path, uint64_t begin = 0,
                                 uint64_t end = UINT64_MAX);

bool rename_file(const std::string& from, const std::string& to);
// Leaves out one that is not there.
void remove_file(const std::string& path);
// Files that were made, renamed or removed in it are so where the host is lost. Throws Error.
void sync_folder(const std::string& directory);

}  // namespace tengen::store
