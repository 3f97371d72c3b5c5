#pragma once
// A helper for native tests of full disks: a small file system in memory.

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/testing.h"

namespace tengen::transport {

// Mounts a file system of `num_bytes` on `folder`, visible only to this process. Returns false if
// the system denies the mount, for example because only root may mount.
inline bool mount_small(const std::string& folder, uint64_t num_bytes) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  const std::string options = "size=" + std::to_string(num_bytes);
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

// Calls `test` in a child process, which must not die, with a folder that holds `num_bytes`.
template <class F>
void in_small_folder(uint64_t num_bytes, F&& test) {
  constexpr int kNoFolder = 77;
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("tengen-small-" + std::to_string(getpid())))
          .string();
  std::filesystem::create_directory(folder);
  const pid_t child = fork();
  if (child == 0) {
    if (!mount_small(folder, num_bytes)) _exit(kNoFolder);
    test(folder);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove(folder);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFolder) {
    std::puts("no small file system: it cannot be mounted here");
    return;
  }
  TENGEN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace tengen::transport
