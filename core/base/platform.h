#pragma once
// What differs between operating systems: durable files, randomness. Tested on Linux; the macOS and
// Windows branches are untested.

#include <cstdint>
#include <string>
#include <string_view>

namespace tengen {

// An open file. Every failure throws Error naming the path and the system's reason.
class File {
 public:
  // Creates the file or truncates it, for reading and writing.
  static File create(const std::string& path);
  static File open_to_read(const std::string& path);

  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const;
  // Up to `num_bytes` from `offset`; fewer only at the end of the file.
  std::string read(uint64_t offset, uint64_t num_bytes) const;
  void write(uint64_t offset, std::string_view bytes);  // all of it
  // Blocks until everything written, and the size, survive a power cut.
  void sync();
  // Renames within one directory, replacing, and syncs the directory so that it lasts.
  void rename_durably(const std::string& to);

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  int descriptor_;
};

// 64 bits of the system's randomness, for names that nobody else has. Throws Error without any.
uint64_t random_number();

// Ends this process at once, as SIGKILL does: no destructor runs, no buffer is flushed.
[[noreturn]] void kill_self();

}  // namespace tengen
