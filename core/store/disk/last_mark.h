#pragma once
// The file `state-mark` of a folder: up to which place the folder's logs are known to be on the
// disk. A log that is not whole before that place is damaged; behind it a lost host may have left a
// log half written.

#include <memory>
#include <optional>
#include <string>

#include "store/disk/disk_file.h"
#include "store/disk/log_file.h"

namespace tengen::store {

struct LastMark {
  LogPlace end;  // behind a mark that was synced; with writer 0 no mark was
  // Whether nobody was told of a later mark. Where false, somebody may have been. A mark is written
  // only when the mark before it is on the disk; so two marks behind a torn frame show damage.
  bool is_exact = false;
};

// Returns none where a folder has no such file. Throws Error where the file is damaged or of
// another version.
std::optional<LastMark> read_last_mark(const std::string& directory);

// Writes the file. Not thread-safe.
class LastMarkFile {
 public:
  // A file that is there stays until put().
  explicit LastMarkFile(std::string directory) : directory_(std::move(directory)) {}
  ~LastMarkFile();  // syncs the file, if that is possible

  // Writes a mark. The first time, and an exact one, blocks until the file is on the disk.
  // Precondition: the mark that it tells of is on the disk. Throws Error where there is no room;
  // the next call is then as this one.
  void put(const LastMark& mark);

 private:
  const std::string directory_;
  std::unique_ptr<DiskFile> file_;  // once it is on the disk under its name
};

}  // namespace tengen::store
