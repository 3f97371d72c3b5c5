#pragma once
// Durable files and system randomness on all operating systems. Tested only on Linux; the macOS and
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
  // Returns `num_bytes` bytes from `offset` on, or fewer at the end of the file.
  std::string read(uint64_t offset, uint64_t num_bytes) const;
  void write(uint64_t offset, std::string_view bytes);  // writes all bytes
  // Blocks until all written data and the file size are durable.
  void sync();
  // Renames the file within its directory, replaces an existing file, and syncs the directory.
  void rename_durably(const std::string& to);

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  int descriptor_;
};

// Returns 64 random bits from the system, for unique names. Throws Error if it provides none.
uint64_t random_number();

// Ends this process immediately, as SIGKILL does: no destructor runs, no buffer is flushed.
[[noreturn]] void kill_self();

}  // namespace tengen
