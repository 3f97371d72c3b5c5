#pragma once
// Follows the logs of a store that runs, from one checkpoint to the newest.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/disk/log_file.h"
#include "store/engine/log.h"

namespace tengen::store {

// Not thread-safe. What it reads may be written meanwhile, by others.
class LogTail {
 public:
  using Take = std::function<void(const engine::event::ChunkSaved&)>;
  struct Mark {
    LogPlace end;
    LogMark mark;
  };

  // `directory` is the folder of a DurableLog.
  explicit LogTail(std::string directory) : directory_(std::move(directory)) {}

  // Goes on behind a frame; false where the folder does not have it any more.
  bool go_on(const LogPlace& place);
  // Begins with a log.
  void begin(uint64_t number);

  // Reads all that is there, and gives `take` what it tells of chunks that were saved. The newest
  // mark; none where there is no new one.
  std::optional<Mark> advance(const Take& take);
  // Whether the next log was compacted before it was read.
  bool is_lost() const { return is_lost_; }

 private:
  std::optional<LogFrame> next_frame();

  const std::string directory_;
  uint64_t number_ = 0;
  std::unique_ptr<LogReader> log_;
  bool is_lost_ = false;
};

}  // namespace tengen::store
