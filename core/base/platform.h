#pragma once
// Differences between operating systems: durable files, randomness. Tested on Linux; the macOS and
// Windows branches are untested.

#include <cstdint>
#include <string>
#include <string_view>

namespace tengen {

// An open file. Every failure throws an Error with the path and the system's reason.
class File {
 public:
  // Creates or truncates the file, for reading and writing.
  static File create(const std::string& path);
  static File open_to_read(const std::string& path);

  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const;
  // Returns up to `num_bytes` from `offset`; fewer only at the end of the file.
  std::string read(uint64_t offset, uint64_t num_bytes) const;
  void write(uint64_t offset, std::string_view bytes);  // writes all bytes
  // Blocks until all written data and the size are durable.
  void sync();
  // Renames within one directory, replacing an existing file, and syncs the directory.
  void rename_durably(const std::string& to);

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  int descriptor_;
};

// Returns 64 bits of the system's randomness, for unique names. Throws Error if there is none.
uint64_t random_number();

// Ends this process at once, like SIGKILL: no destructor runs, no buffer is flushed.
[[noreturn]] void kill_self();

}  // namespace tengen
