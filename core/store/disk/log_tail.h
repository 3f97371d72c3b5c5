#pragma once
// Follows the logs of a running store, from one checkpoint to the newest.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/disk/log_file.h"
#include "store/state/log.h"

namespace tengen::store {

// Not thread-safe. The store may write the logs meanwhile.
class LogTail {
 public:
  using Take = std::function<void(const engine::event::ChunkSaved&)>;
  struct Mark {
    LogPlace end;
    LogMark mark;
  };

  // `directory` is the folder of a DurableLog.
  explicit LogTail(std::string directory) : directory_(std::move(directory)) {}

  // Goes on behind a frame; false where the folder has lost that frame's log.
  bool go_on(const LogPlace& place);
  // Begins at the start of a log.
  void begin(uint64_t number);

  // Reads all frames that are there, and calls `take` for each chunk that was saved. Returns the
  // newest mark; none where there is no new one.
  std::optional<Mark> advance(const Take& take);
  // Whether the next log was replaced by a state before it was read.
  bool is_lost() const { return is_lost_; }

 private:
  std::optional<LogFrame> next_frame();

  const std::string directory_;
  uint64_t number_ = 0;
  std::unique_ptr<LogReader> log_;
  bool is_lost_ = false;
};

}  // namespace tengen::store
