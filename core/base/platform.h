#pragma once
// Durable files and random bits from the operating system. Tested only on Linux; the macOS and
// Windows branches are untested.

#include <cstdint>
#include <string>
#include <string_view>

namespace tengen {

// An open file. Every failure throws an Error with the path and the reason from the system.
class File {
 public:
  // Creates or truncates the file at `path`, and opens it for reading and writing.
  static File create(const std::string& path);
  static File open_to_read(const std::string& path);

  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const;
  // Reads `num_bytes` bytes from `offset` on. Returns fewer bytes at the end of the file.
  std::string read(uint64_t offset, uint64_t num_bytes) const;
  void write(uint64_t offset, std::string_view bytes);  // writes all bytes
  // Blocks until all written data and the size of the file are durable.
  void sync();
  // Renames the file to `to`, which may exist, and syncs the directory of `to`.
  void rename_durably(const std::string& to);

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  int descriptor_;
};

// Returns 64 random bits from the system, for unique names. Throws Error if they are unavailable.
uint64_t random_number();

// Ends this process immediately, like SIGKILL. Runs no destructors and flushes no buffers.
[[noreturn]] void kill_self();

}  // namespace tengen
