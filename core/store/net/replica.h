#pragma once
// A replica of a store on another host: a folder that has a whole checkpoint of it at any instant,
// with which a store goes on where that host is lost.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/disk/durable_log.h"
#include "store/disk/row_file.h"
#include "store/disk/state_files.h"
#include "store/net/net_protocol.h"
#include "transport/shared_memory.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// Whatever instant its process is killed at, the last checkpoint that was answered for is there. Of
// the next one's rows some may be there already; those that they replace are of items that the
// store removed since, which are removed here too when they are drawn, as damaged ones.
class Replica {
 public:
  // Goes on with what the folder has, and removes what is behind its last checkpoint. Throws Error
  // where that cannot be; a damaged folder stays as it is.
  explicit Replica(std::string directory);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica();

  // Behind the last checkpoint; none where it has none. For any thread.
  std::optional<LogPlace> place();
  // How many seconds ago it began, by this host's clock; the same.
  std::optional<double> age_s();

  // Takes what the store sends over a connected stream, which it takes over, until that ends.
  // Blocks; for one thread. Throws Error where the store says why it ends, or the disk refuses.
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
  // Of the thread that follows.
  std::map<uint32_t, std::unique_ptr<RowFile>> rows_;  // by pool
  std::map<uint32_t, uint64_t> row_bytes_;
  bool has_new_rows_ = false;
  std::optional<transport::SharedMemory> buffer_;
  std::optional<uint64_t> new_state_;               // that the next mark makes whole
  std::map<uint64_t, std::unique_ptr<File>> logs_;  // with something that is not synced
  LastMarkFile last_mark_;
  uint64_t num_compacted_ = 0;  // the first log that the compactor lacks
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
