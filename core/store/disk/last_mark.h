#pragma once
// How far the logs of a folder are on its disk, by a file of its own: `state-mark`. What is lacking
// before that is damage, and not what a lost host had left half written.

#include <memory>
#include <optional>
#include <string>

#include "store/disk/disk_file.h"
#include "store/disk/log_file.h"

namespace tengen::store {

struct LastMark {
  LogPlace end;  // behind a mark that was synced; that of writer 0: none was
  // Whether no later one was told of. Else a mark behind it may be, if another mark follows: that
  // one was written when it was on the disk.
  bool is_exact = false;
};

// None where a folder has no such file. Throws Error where it is damaged or of another version.
std::optional<LastMark> read_last_mark(const std::string& directory);

// Writes it. Not thread-safe.
class LastMarkFile {
 public:
  // What is there stays until put().
  explicit LastMarkFile(std::string directory) : directory_(std::move(directory)) {}
  ~LastMarkFile();  // what was put is synced, if it can be

  // Blocks with `is_synced`, as the first time, until it is on the disk. Precondition: what it
  // tells of is. Throws Error where there is no room.
  void put(const LastMark& mark, bool is_synced);

 private:
  const std::string directory_;
  std::unique_ptr<DiskFile> file_;
};

}  // namespace tengen::store
