#pragma once
// A replica of a store on another host: a folder that has a whole checkpoint of that store at any
// instant, from which a store goes on when the host is lost.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/disk/durable_log.h"
#include "store/disk/row_file.h"
#include "store/disk/state_files.h"
#include "store/net/replica_messages.h"
#include "transport/shared_memory.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// At whatever instant the replica's process is killed, the folder has the last checkpoint that the
// replica acknowledged. Rows of the next checkpoint may already have replaced some of its rows. The
// items of those rows have been removed from the store since; a store that goes on here finds them
// damaged, and removes them, when it draws them.
class Replica {
 public:
  // Goes on from the folder's last checkpoint, and removes what lies behind it. Throws Error where
  // the folder cannot be used; a damaged folder stays as it is.
  explicit Replica(std::string directory);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica();

  // The place behind the last checkpoint; none where there is none. For any thread.
  std::optional<LogPlace> place();
  // How many seconds ago the last checkpoint began, by this host's clock; none where there is none.
  // For any thread.
  std::optional<double> age_s();

  // Receives checkpoints over a connected stream, which it takes over, until the stream ends.
  // Blocks; for one thread. Throws Error where the store sends an error, or the disk refuses.
  void follow(int descriptor);

 private:
  struct File;

  bool take_row(transport::StreamSocket& from);
  bool take_state(transport::StreamSocket& from);
  bool take_log(transport::StreamSocket& from);
  bool take_mark(transport::StreamSocket& from);
  [[noreturn]] void take_error(transport::StreamSocket& from);
  bool copy(transport::StreamSocket& from, uint64_t num_bytes, uint64_t offset, File* to);
  void sync_rows();
  void sync_logs();
  void begin_compaction();
  void compact_before(uint64_t position);
  void set_aside();
  void remove_others(uint64_t state, const LogPlace& end);

  const std::string directory_;
  std::mutex mutex_;
  std::optional<DurableLog::Last> last_;
  std::optional<std::string> trouble_;  // of the compactor
  // Used by the thread that follows.
  std::map<uint32_t, std::unique_ptr<RowFile>> rows_;  // by pool
  std::map<uint32_t, uint64_t> row_bytes_;
  bool has_new_rows_ = false;
  std::optional<transport::SharedMemory> buffer_;
  // number of the state that the next mark makes whole
  std::optional<uint64_t> new_state_;
  std::map<uint64_t, std::unique_ptr<File>> logs_;  // logs with bytes that are not synced
  LastMarkFile last_mark_;
  uint64_t num_compacted_ = 0;  // the first log that the compactor was not told of
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
