#pragma once
// A file of rows of one size, read and written past the system's cache where that is possible.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "store/disk/disk_file.h"

namespace tengen::store {

// The path of a pool's rows in a store's folder.
std::string rows_path(const std::string& directory, uint32_t pool);

// Rows are multiples of 4096 bytes, and so are the addresses that they are copied from and to.
// Thread-safe; every call blocks for the disk. A call that fails throws Error.
class RowFile {
 public:
  // Opens the file, or makes it. With `is_hidden` the file is made and its name removed, so that it
  // vanishes with the process, whatever it forked.
  RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile() = default;

  void read(uint64_t row, std::byte* to) const;
  // Returns the CRC-32C of the row that was read; none where it cannot be read.
  std::optional<uint32_t> try_read(uint64_t row, std::byte* to) const;
  // Reserves no more than a part of `room_bytes` behind the row.
  void write(uint64_t row, const std::byte* from, uint64_t room_bytes = UINT64_MAX);
  // Whether the file system has room for one row more.
  bool try_grow();
  // Blocks until rows that were written survive the loss of the host.
  void sync() const { file_.sync(); }
  // Throws the Error of a row that is not whole.
  [[noreturn]] void refuse(uint64_t row, const char* what) const;

 private:
  // Reserves room, `ahead_bytes` more than asked for where there is much; false where the file
  // system cannot reserve any. Throws DiskFullError.
  bool grow_to(uint64_t num_bytes, uint64_t ahead_bytes);

  const uint64_t row_bytes_;
  const DiskFile file_;
  std::mutex mutex_;
  uint64_t num_bytes_ = 0;  // reserved
};

}  // namespace tengen::store
