#pragma once
// A file of rows of one size, read and written past the system's cache where it can be.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "store/disk/disk_file.h"

namespace tengen::store {

// Where a store's folder has the rows of a pool.
std::string rows_path(const std::string& directory, uint32_t pool);

// Rows are multiples of 4096 bytes, and so are the addresses that they are copied from and to.
// Thread-safe; every call blocks for the disk. Errors are texts, as a store goes on without a row.
class RowFile {
 public:
  // Opens the file, or makes it. With `is_hidden` it is made, and has no name from then on: it
  // goes with its process. Throws Error where that cannot be.
  RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile() = default;

  // Each returns why it could not; empty: it did.
  std::string read(uint64_t row, std::byte* to) const;
  std::string write(uint64_t row, const std::byte* from);
  // What was written is there where the host is lost; the same return.
  std::string sync();
  // For people.
  std::string name_of(uint64_t row) const;

 private:
  std::string grow_to(uint64_t num_rows);

  const uint64_t row_bytes_;
  const DiskFile file_;
  std::mutex mutex_;
  uint64_t num_bytes_ = 0;  // that are reserved
};

}  // namespace tengen::store
