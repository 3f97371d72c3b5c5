#pragma once
// A file of rows of one size. Reads and writes bypass the page cache if possible.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/disk_file.h"

namespace tengen::store {

// Returns the path of a pool's row file in a store's folder.
std::string rows_path(const std::string& directory, uint32_t pool);

// Reads and writes rows. The row size and all memory addresses must be multiples of 4096 bytes.
// Thread-safe. Every call waits for the disk, and throws Error if it fails.
class RowFile {
 public:
  // Opens or creates the file. With `is_hidden`, creates the file and removes its name, so that the
  // file vanishes with the process, even if the process has forked.
  RowFile(const std::string& path, uint64_t row_bytes, bool is_hidden);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile() = default;

  void read(uint64_t row, std::byte* to) const;
  // Reads a row into `to`. Returns the row's CRC-32C, or none if the row cannot be read.
  std::optional<uint32_t> try_read(uint64_t row, std::byte* to) const;
  // Writes a row. Reserves at most a fraction of `room_bytes` in the file after the row.
  void write(uint64_t row, const std::byte* from, uint64_t room_bytes = UINT64_MAX);
  // Returns whether the file system has space for one more row.
  bool try_grow();
  // Blocks until all written rows would survive a host crash.
  void sync() const { file_.sync(); }
  // Throws the Error that reports row `row` as damaged.
  [[noreturn]] void refuse(uint64_t row, const char* what) const;

 private:
  // Reserves space for `num_bytes`, and `ahead_bytes` more if enough space is free. Returns false
  // if the file system cannot reserve space. Throws DiskFullError.
  bool grow_to(uint64_t num_bytes, uint64_t ahead_bytes);

  const uint64_t row_bytes_;
  const DiskFile file_;
  std::mutex mutex_;
  uint64_t num_bytes_ = 0;  // bytes reserved in the file
};

}  // namespace tengen::store
