#pragma once
// Memory shared by processes on one host: a memory-mapped file in a memory file system.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tengen::transport {

// A mapping of a complete file. Another process that opens the same path sees the same bytes. The
// file outlives every process, even a killed one, until it is removed. It is never truncated, so
// mapped bytes stay valid even after its name is removed. Movable.
class SharedMemory {
 public:
  // Creates a file, which must not exist, with all bytes allocated and zeroed, so that no later
  // write fails. If the file system is full, throws an Error that says how to enlarge it. If the
  // process is killed during this call, the file is complete or does not exist, and a file
  // `path.part` may remain.
  static SharedMemory create(const std::string& path, uint64_t num_bytes);
  // Like create(), but if the file exists, maps it. Throws Error if its size is not `num_bytes`.
  static SharedMemory adopt(const std::string& path, uint64_t num_bytes);
  // Maps an existing file. Throws Error if it is missing or has fewer than `min_bytes` bytes.
  static SharedMemory open(const std::string& path, uint64_t min_bytes = 1);
  // Maps the file of `descriptor`, which may be shared with other processes and stays open.
  static SharedMemory unnamed(int descriptor, uint64_t num_bytes);
  // Throws the same Error as create() if the file system of `directory` has too little space.
  static void check_room(const std::string& directory, uint64_t num_bytes);
  // Allocates private memory of this process.
  static SharedMemory anonymous(uint64_t num_bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();  // unmaps the file without removing it

  std::byte* data() const { return data_; }
  uint64_t num_bytes() const { return num_bytes_; }
  const std::string& path() const { return path_; }  // empty if the memory has no path

 private:
  SharedMemory(std::string path, std::byte* data, uint64_t num_bytes)
      : path_(std::move(path)), data_(data), num_bytes_(num_bytes) {}

  std::string path_;
  std::byte* data_ = nullptr;
  uint64_t num_bytes_ = 0;
};

}  // namespace tengen::transport
