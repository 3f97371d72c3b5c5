#pragma once
// A disk that a test looks at, or that fails where the test says so; a process without descriptors.

#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "base/testing.h"
#include "store/disk/disk_file.h"

namespace tengen::store {

// Calls functions with a path, in the thread that writes or syncs; what they throw, the write or
// sync throws.
class WatchedDisk final : public DiskWatch {
 public:
  using OnPath = std::function<void(const std::string& path)>;
  explicit WatchedDisk(OnPath on_write, OnPath on_sync = nullptr)
      : on_write_(std::move(on_write)), on_sync_(std::move(on_sync)) {
    set_disk_watch(this);
  }
  ~WatchedDisk() override { set_disk_watch(nullptr); }

  void written(const std::string& path, uint64_t, std::span<const std::byte>) override {
    if (on_write_) on_write_(path);
  }
  void synced(const std::string& path) override {
    if (on_sync_) on_sync_(path);
  }
  void folder_synced(const std::string& directory) override {
    if (on_sync_) on_sync_(directory);
  }

 private:
  const OnPath on_write_;
  const OnPath on_sync_;
};

// While one lives, this process gets no more descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    TENGEN_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    TENGEN_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace tengen::store
