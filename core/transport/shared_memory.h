#pragma once
// Memory that processes of one host share: a file in a memory file system, mapped.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tengen::transport {

// A mapping of a whole file. Another process that opens the same path sees the same bytes. They
// outlive every process, even one that is killed, until the file is removed. Nobody ever truncates
// such a file, so that mapped bytes stay valid, even when its name is removed. Movable.
class SharedMemory {
 public:
  // Makes a file, which must not exist, of zeroed bytes that are all allocated, so that no later
  // write fails. Where the file system has no room, throws an Error that says how to enlarge it. A
  // process that is killed in this call leaves the whole file or none, and perhaps `path.part`.
  static SharedMemory create(const std::string& path, uint64_t num_bytes);
  // The same, but maps a file of that size where there is one.
  static SharedMemory adopt(const std::string& path, uint64_t num_bytes);
  // Maps an existing file. Throws Error where there is none, or it has fewer bytes.
  static SharedMemory open(const std::string& path, uint64_t min_bytes = 1);
  // Maps memory without a name that another process may have too, by its descriptor, which stays
  // the caller's.
  static SharedMemory unnamed(int descriptor, uint64_t num_bytes);
  // Throws the same Error where a folder's file system has less than `num_bytes` of room now.
  static void check_room(const std::string& directory, uint64_t num_bytes);
  // Memory of this process alone.
  static SharedMemory anonymous(uint64_t num_bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();  // unmaps; the file stays

  std::byte* data() const { return data_; }
  uint64_t num_bytes() const { return num_bytes_; }
  const std::string& path() const { return path_; }  // empty for one without a name

 private:
  SharedMemory(std::string path, std::byte* data, uint64_t num_bytes)
      : path_(std::move(path)), data_(data), num_bytes_(num_bytes) {}

  std::string path_;
  std::byte* data_ = nullptr;
  uint64_t num_bytes_ = 0;
};

}  // namespace tengen::transport
