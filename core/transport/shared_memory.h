#pragma once
// Memory that processes of one host share: a file in a memory file system, mapped.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tengen::transport {

// A mapping of a whole file. Another process that opens the same path sees the same bytes; they
// outlive every process, also one that is killed, until the file is removed. Nobody ever cuts such
// a file, so that what is mapped is there, whatever becomes of its name. Movable.
class SharedMemory {
 public:
  // Makes the file, which must not exist, of zeroed bytes that are all there: where the file
  // system has no room this throws an Error that says how to enlarge it, and no later write ever
  // fails. A process that is killed in it leaves the whole file or none, and perhaps `path.part`.
  static SharedMemory create(const std::string& path, uint64_t num_bytes);
  // The same, or maps a file of that size that is there.
  static SharedMemory adopt(const std::string& path, uint64_t num_bytes);
  // Maps a file that is there. Throws Error where it is not, or has fewer bytes.
  static SharedMemory open(const std::string& path, uint64_t min_bytes = 1);
  // Throws the same Error where the file system of a folder has less than so much room now.
  static void check_room(const std::string& directory, uint64_t num_bytes);
  // Memory of this process alone.
  static SharedMemory anonymous(uint64_t num_bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();  // unmaps; the file stays

  std::byte* data() const { return data_; }
  uint64_t num_bytes() const { return num_bytes_; }
  const std::string& path() const { return path_; }  // empty for an anonymous one

 private:
  SharedMemory(std::string path, std::byte* data, uint64_t num_bytes)
      : path_(std::move(path)), data_(data), num_bytes_(num_bytes) {}

  std::string path_;
  std::byte* data_ = nullptr;
  uint64_t num_bytes_ = 0;
};

}  // namespace tengen::transport
