#pragma once
// An empty temporary folder, in memory if possible, which the destructor removes.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fuzz/target.h"

namespace tengen::fuzz {

class ScratchFolder {
 public:
  ScratchFolder() {
    namespace fs = std::filesystem;
    const fs::path memory = "/dev/shm";
    path_ = (fs::is_directory(memory) ? memory : fs::temp_directory_path()) / "tengen-fuzz-XXXXXX";
    expect(mkdtemp(path_.data()) != nullptr, "a folder for files");
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tengen::fuzz
