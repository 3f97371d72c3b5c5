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
  // process is killed during this call, the file is complete or does not exist, and `path.part` may
  // be left.
  static SharedMemory create(const std::string& path, uint64_t num_bytes);
  // As create(), but maps an existing file of that size if there is one.
  static SharedMemory adopt(const std::string& path, uint64_t num_bytes);
  // Maps an existing file. Throws Error if there is none, or if it has fewer bytes.
  static SharedMemory open(const std::string& path, uint64_t min_bytes = 1);
  // Maps unnamed memory, which another process may share. The caller keeps the descriptor.
  static SharedMemory unnamed(int descriptor, uint64_t num_bytes);
  // Throws the Error of create() if the folder's file system has less than `num_bytes` free.
  static void check_room(const std::string& directory, uint64_t num_bytes);
  // Allocates private memory of this process.
  static SharedMemory anonymous(uint64_t num_bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();  // unmaps; the file stays

  std::byte* data() const { return data_; }
  uint64_t num_bytes() const { return num_bytes_; }
  const std::string& path() const { return path_; }  // empty if unnamed

 private:
  SharedMemory(std::string path, std::byte* data, uint64_t num_bytes)
      : path_(std::move(path)), data_(data), num_bytes_(num_bytes) {}

  std::string path_;
  std::byte* data_ = nullptr;
  uint64_t num_bytes_ = 0;
};

}  // namespace tengen::transport
