#pragma once
// A file of rows of one size, read and written past the system's cache where that is possible.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "store/disk/disk_file.h"

namespace tengen::store {

// The path of a pool's rows in a store's folder.
std::string rows_path(const std::string& directory, uint32_t pool);

// Rows are multiples of 4096 bytes, and so are the addresses that they are copied from and to.
// Thread-safe; every call blocks for the disk. Errors are returned as texts, as a store goes on
// without a row that is lost.
class RowFile {
 public:
  // Opens the file, or makes it. With `is_hidden` the file is made and its name removed, so that it
  // vanishes with the process. Throws Error where that fails.
  RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile() = default;

  // Each returns an error; empty: none.
  std::string read(uint64_t row, std::byte* to) const;
  std::string write(uint64_t row, const std::byte* from);
  // Blocks until rows that were written survive the loss of the host.
  std::string sync();
  // For people.
  std::string name_of(uint64_t row) const;

 private:
  std::string grow_to(uint64_t num_rows);

  const uint64_t row_bytes_;
  const DiskFile file_;
  std::mutex mutex_;
  uint64_t num_bytes_ = 0;  // reserved
};

}  // namespace tengen::store
