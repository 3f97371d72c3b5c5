#pragma once
// Test helpers that simulate a disk after a power loss, observe a disk or make it fail, and leave a
// process without free descriptors.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/disk_file.h"
#include "base/rng.h"
#include "base/testing.h"

namespace tengen::store {

// Observes the files of a folder, and simulates a power loss. Thread-safe.
class LostDisk final : public DiskWatch {
 public:
  explicit LostDisk(const std::filesystem::path& folder) : folder_(folder) { set_disk_watch(this); }
  ~LostDisk() override { set_disk_watch(nullptr); }

  // Writes a folder with the contents that the disk would have if the power failed now. Without
  // `rng`, all data that was not synced is lost; with `rng`, a random part of it survives.
  void write(const std::filesystem::path& to, Rng* rng) {
    const std::scoped_lock lock(mutex_);
    Names names = durable_names_;
    for (const Change& change : changes_) {
      if (rng != nullptr && rng->below(2) == 0) apply(change, &names);
    }
    for (const auto& [name, file] : names) {
      Bytes bytes = file->durable;
      for (const Write& write : file->pending) {
        if (rng != nullptr && rng->below(2) == 0) apply(write, &bytes);
      }
      std::ofstream(to / name, std::ios::binary)
          .write(bytes.data(), static_cast<int64_t>(bytes.size()));
    }
  }

  void made(const std::string& path) override { change({path, "", std::make_shared<File>()}); }
  void written(const std::string& path, uint64_t offset,
               std::span<const std::byte> bytes) override {
    const char* begin = reinterpret_cast<const char*>(bytes.data());
    add(path, {offset, Bytes(begin, begin + bytes.size()), false});
  }
  void cut(const std::string& path, uint64_t num_bytes) override {
    add(path, {num_bytes, {}, true});
  }
  void synced(const std::string& path) override {
    const std::scoped_lock lock(mutex_);
    const auto at = names_.find(name_of(path));
    if (!is_here(path) || at == names_.end()) return;
    for (const Write& write : at->second->pending) apply(write, &at->second->durable);
    at->second->pending.clear();
  }
  void renamed(const std::string& from, const std::string& to) override {
    change({to, from, nullptr});
  }
  void removed(const std::string& path) override { change({"", path, nullptr}); }
  void folder_synced(const std::string& directory) override {
    const std::scoped_lock lock(mutex_);
    if (directory != folder_) return;
    durable_names_ = names_;
    changes_.clear();
  }

 private:
  using Bytes = std::vector<char>;
  struct Write {
    uint64_t offset;
    Bytes bytes;
    bool is_cut;
  };
  struct File {
    Bytes durable;
    std::vector<Write> pending;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  // A change of a file name: `name` is the created file, or the new name of the file `before`.
  struct Change {
    std::string name, before;
    std::shared_ptr<File> made;
  };

  static std::string name_of(const std::filesystem::path& path) { return path.filename(); }
  bool is_here(const std::filesystem::path& path) const { return path.parent_path() == folder_; }

  static void apply(const Write& write, Bytes* to) {
    if (write.is_cut) return to->resize(write.offset);
    to->resize(std::max<size_t>(to->size(), write.offset + write.bytes.size()));
    std::copy(write.bytes.begin(), write.bytes.end(),
              to->begin() + static_cast<int64_t>(write.offset));
  }
  static void apply(const Change& change, Names* to) {
    std::shared_ptr<File> file = change.made;
    if (!file) {
      const auto before = to->find(change.before);
      if (before == to->end()) return;
      file = before->second;
      to->erase(before);
    }
    if (!change.name.empty()) (*to)[change.name] = file;
  }

  void change(Change change) {
    if (!is_here(change.name.empty() ? change.before : change.name)) return;
    change.name = name_of(change.name);
    change.before = name_of(change.before);
    const std::scoped_lock lock(mutex_);
    apply(change, &names_);
    changes_.push_back(std::move(change));
  }
  void add(const std::string& path, Write write) {
    const std::scoped_lock lock(mutex_);
    const auto at = names_.find(name_of(path));
    if (is_here(path) && at != names_.end()) at->second->pending.push_back(std::move(write));
  }

  const std::filesystem::path folder_;
  std::mutex mutex_;
  Names names_;
  Names durable_names_;
  std::vector<Change> changes_;  // changes of names since the folder was synced
};

// Calls a test's functions with the path of each written or synced file, in the same thread. If a
// function throws, the write or sync throws the same exception.
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

// While an object of this class exists, this process cannot open more descriptors.
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
