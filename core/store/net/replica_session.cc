// The store's side of a replica: sends what each checkpoint has that the one before did not have.
//
// It reads the store's files as a store does that goes on from them. Nobody waits for it: a row
// that is overwritten before it was read was of items that have been removed, and a log that is
// removed before it was read has been replaced by a state.

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "store/disk/log_tail.h"
#include "store/disk/row_file.h"
#include "store/disk/state_files.h"
#include "store/net/net_session.h"
#include "store/net/replica_messages.h"
#include "transport/shared_memory.h"

namespace tengen::store {
namespace {

using engine::Engine;
using engine::event::ChunkSaved;

// How many checkpoints in a row may be skipped because some of their rows were overwritten.
constexpr int kMaxLeftOut = 8;

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

class ReplicaSession final : public NetSession {
 public:
  ReplicaSession(int descriptor, const std::string& name, Store* store,
                 const std::optional<LogPlace>& place)
      : NetSession(descriptor, "replica " + name),
        replica_name_(name),
        store_(store),
        checkpointer_(store->checkpointer()),
        directory_(checkpointer_->log().directory()),
        place_(place),
        tail_(directory_) {
    store->read([&](const Engine& engine) {
      for (uint32_t i = 0; i < engine.num_pools(); ++i) {
        const uint64_t num_bytes = engine.pool(i).slots().slot_bytes();
        files_.push_back(std::make_unique<RowFile>(rows_path(directory_, i), num_bytes, false));
        row_bytes_.push_back(num_bytes);
      }
    });
    const uint64_t largest = *std::max_element(row_bytes_.begin(), row_bytes_.end());
    row_ = std::make_unique<transport::SharedMemory>(transport::SharedMemory::anonymous(largest));
    sent_.resize(row_bytes_.size());
  }

  void run() override {
    try {
      // The replica sends this once it has checked whose replica it is to be.
      Shipped ready;
      if (!socket_.read(&ready, sizeof ready) || !wait_for_first()) return;
      while (!socket_.has_ended()) {
        try {
          if (!follow()) return;
        } catch (const Error&) {
          // A state may have replaced the log that was being read.
          if (place_ && place_->number >= newest_state()) throw;
          next_ = Next::kAnew;
        }
      }
    } catch (const Error& error) {
      send_error(error.what());
      linger();
    }
  }

  std::optional<ReplicaStatus> replica() override {
    const std::scoped_lock lock(shipped_mutex_);
    if (!shipped_) return ReplicaStatus{replica_name_, std::nullopt};
    if (checkpointer_->log().position() == shipped_->position) {
      return ReplicaStatus{replica_name_, 0.0};
    }
    const int64_t behind_us = std::max<int64_t>(0, now_us() - shipped_->begun_us);
    return ReplicaStatus{replica_name_, static_cast<double>(behind_us) / 1e6};
  }

 private:
  struct Row {
    uint32_t pool, place, checksum;
    auto operator<=>(const Row&) const = default;
  };

  enum class Next { kGoOn, kAnew, kFollow };

  // Does one step; false where the replica has gone.
  bool follow() {
    if (next_ == Next::kGoOn) {
      const bool goes_on = place_ && place_->number >= checkpointer_->log().first();
      next_ = goes_on && tail_.go_on(*place_) ? Next::kFollow : Next::kAnew;
    }
    if (next_ == Next::kAnew) {
      begin_anew();
      next_ = Next::kFollow;
    }
    if (find_mark()) return ship();
    if (tail_.is_lost()) {
      next_ = Next::kAnew;
    } else {
      const Deadline slice = std::chrono::steady_clock::now() + kSlice;
      (void)checkpointer_->wait(checkpointer_->num_made() + 1, slice);
    }
    return true;
  }

  uint64_t newest_state() const {
    const std::vector<uint64_t> numbers = state_numbers(directory_);
    check(!numbers.empty(), "disk_directory", directory_, "must have a state; leave it alone");
    return numbers.front();
  }

  // Waits for this store's first checkpoint, as files of the store before it may lack some of its
  // changes. False where the replica has gone.
  bool wait_for_first() {
    if (checkpointer_->num_made() > 0) return true;
    const uint64_t first = checkpointer_->ask();
    while (!socket_.has_ended()) {
      if (checkpointer_->wait(first, std::chrono::steady_clock::now() + kSlice)) return true;
    }
    return false;
  }

  // Begins with the newest mark state, and the rows that it names and this session has not sent
  // yet. The state may name rows of dead chunks, which are overwritten.
  void begin_anew() {
    const uint64_t number = newest_state();
    place_ = {number, 0, 0};
    const engine::State state = read_state(directory_, number);
    state_ = read_file(state_path(directory_, number));
    tail_.begin(number);
    rows_.clear();
    for (uint32_t pool = 0; pool < state.chunks.size(); ++pool) {
      for (const engine::SavedChunk& chunk : state.chunks[pool]) {
        if (chunk.place != engine::kNowhere) rows_.push_back({pool, chunk.place, chunk.checksum});
      }
    }
    std::erase_if(rows_, [&](const Row& row) {
      return row.pool < sent_.size() && row.place < sent_[row.pool].size() &&
             sent_[row.pool][row.place] == row.checksum;
    });
  }

  bool find_mark() {
    const auto mark = tail_.advance([&](const ChunkSaved& saved) {
      rows_.push_back({saved.pool, saved.place, saved.checksum});
    });
    if (mark) mark_ = *mark;
    return mark.has_value();
  }

  // Sends the newest checkpoint; false where the replica has gone.
  bool ship() {
    for (int num_left_out = 0;; ++num_left_out) {
      std::vector<Row> used_again;
      if (!send_rows(&used_again)) return false;
      // No row of a checkpoint is overwritten before the next mark. Where there is no next mark,
      // nobody needs a row that was overwritten.
      if (used_again.empty() || num_left_out == kMaxLeftOut || !find_mark()) break;
      rows_.insert(rows_.end(), used_again.begin(), used_again.end());
    }
    if (state_ && !send_state()) return false;
    for (uint64_t number = place_->number; number <= mark_.end.number; ++number) {
      if (!send_log(number, log_path(directory_, number))) return false;
    }
    const MarkMessage message{Reply::kMark, 0, mark_.end, mark_.mark};
    iovec part = transport::part_of(&message, sizeof message);
    Shipped reply;
    if (!socket_.send({&part, 1}) || !socket_.read(&reply, sizeof reply)) return false;
    check(reply.kind == Request::kShipped, "request", static_cast<uint32_t>(reply.kind),
          "must be a replica's; install the same tengen");
    place_ = mark_.end;
    const std::scoped_lock lock(shipped_mutex_);
    shipped_ = mark_.mark;
    return true;
  }

  // Sends rows_. Rows that were overwritten go to `used_again` instead. False where the replica has
  // gone.
  bool send_rows(std::vector<Row>* used_again) {
    std::vector<Row> rows = std::exchange(rows_, {});
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      const Row& row = rows[begin];
      check(row.pool < files_.size(), "pool", row.pool, "must be the store's; its log is damaged");
      // Where a place was saved to several times, the last row is there.
      const uint32_t checksum = read_row(row);
      bool is_saved = false;
      for (end = begin; end < rows.size() && is_same_place(rows[end], row); ++end) {
        is_saved = is_saved || rows[end].checksum == checksum;
      }
      if (!is_saved) {
        used_again->insert(used_again->end(), rows.begin() + static_cast<int64_t>(begin),
                           rows.begin() + static_cast<int64_t>(end));
        continue;
      }
      const RowMessage message{Reply::kRow, row.pool, row.place, row_bytes_[row.pool]};
      iovec parts[] = {transport::part_of(&message, sizeof message),
                       transport::part_of(row_->data(), row_bytes_[row.pool])};
      if (!socket_.send(parts)) return false;
      std::vector<uint32_t>& sent = sent_[row.pool];
      if (row.place >= sent.size()) sent.resize(size_t{row.place} + 1);
      sent[row.place] = checksum;
    }
    return true;
  }

  static bool is_same_place(const Row& a, const Row& b) {
    return std::tie(a.pool, a.place) == std::tie(b.pool, b.place);
  }

  uint32_t read_row(const Row& row) {
    // A row that cannot be read is sent as a damaged one; a store that goes on from the replica
    // will find it damaged too.
    (void)files_[row.pool]->read(row.place, row_->data());
    return crc32c({reinterpret_cast<const char*>(row_->data()), row_bytes_[row.pool]});
  }

  bool send_state() {
    const StateMessage message{Reply::kState, 0, place_->number, state_->size()};
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(state_->data(), state_->size())};
    const bool is_sent = socket_.send(parts);
    state_.reset();
    return is_sent;
  }

  // Sends the part of a log between the last mark and this one.
  bool send_log(uint64_t number, const std::string& path) {
    const uint64_t begin = number == place_->number ? place_->offset : 0;
    const uint64_t end = number == mark_.end.number ? mark_.end.offset : UINT64_MAX;
    const std::vector<std::byte> log = read_file(path, begin, end);
    const LogMessage message{Reply::kLog, 0, number, begin, log.size()};
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(log.data(), log.size())};
    return socket_.send(parts);
  }

  Next next_ = Next::kGoOn;
  const std::string replica_name_;
  Store* const store_;
  Checkpointer* const checkpointer_;
  const std::string directory_;
  std::optional<LogPlace> place_;  // behind the replica's last checkpoint
  LogTail tail_;
  LogTail::Mark mark_{};  // the newest
  // the state that the replica begins with, until it is sent
  std::optional<std::vector<std::byte>> state_;
  std::vector<std::unique_ptr<RowFile>> files_;  // by pool
  std::vector<uint64_t> row_bytes_;
  std::unique_ptr<transport::SharedMemory> row_;
  std::vector<Row> rows_;                    // rows that were saved since the last mark
  std::vector<std::vector<uint32_t>> sent_;  // by pool and place: the checksum; 0: perhaps not sent
  std::mutex shipped_mutex_;
  std::optional<LogMark> shipped_;  // the replica's newest checkpoint
};

}  // namespace

std::unique_ptr<NetSession> replica_session(int descriptor, const std::string& name, Store* store,
                                            const std::optional<LogPlace>& place) {
  return std::make_unique<ReplicaSession>(descriptor, name, store, place);
}

}  // namespace tengen::store
