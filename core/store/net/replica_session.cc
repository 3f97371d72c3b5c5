// The store's side of a replica session: sends the changes from each checkpoint to the next.
//
// The session reads the store's files in the same way as a store that resumes from them. The store
// never waits for the session: if a row is overwritten before it was read, its items have been
// removed; if a log is removed before it was read, a state has replaced it.

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/disk/log_file.h"
#include "store/disk/row_file.h"
#include "store/disk/state_files.h"
#include "store/net/net_session.h"
#include "store/net/replica.h"
#include "transport/shared_memory.h"

namespace tengen::store {
namespace {

using engine::Engine;
using engine::Log;
using engine::event::ChunkSaved;

// The maximum number of consecutive checkpoints that may be skipped because rows were overwritten.
constexpr int kMaxLeftOut = 8;

// Appends to `rows` one row per chunk that `records` report as saved.
void find_saved(std::span<const std::byte> records, std::vector<Row>* rows) {
  while (records.size() >= sizeof(Log::Head)) {
    Log::Head head;
    std::memcpy(&head, records.data(), sizeof head);
    if (head.num_bytes < sizeof head || head.num_bytes > records.size()) break;
    if (head.kind == engine::event::kKindOf<ChunkSaved> &&
        head.num_bytes >= sizeof head + sizeof(ChunkSaved)) {
      ChunkSaved saved;
      std::memcpy(&saved, records.data() + sizeof head, sizeof saved);
      rows->push_back({saved.pool, saved.place, saved.checksum});
    }
    records = records.subspan(head.num_bytes);
  }
  check(records.empty(), "log", records.size(), "must be complete; the disk has lost records");
}

class ReplicaSession final : public NetSession {
 public:
  ReplicaSession(transport::Connection connection, const std::string& name, Store* store)
      : NetSession(std::move(connection), "replica " + name),
        replica_name_(name),
        checkpointer_(store->checkpointer()),
        directory_(checkpointer_->log().directory()),
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
  void serve() override {
    // Waits for the replica's first Shipped: the replica has checked that it may follow.
    Shipped ready;
    if (!socket_.read(&ready, sizeof ready) || !wait_for_first()) return;
    while (!socket_.has_ended()) {
      try {
        if (!follow()) return;
      } catch (const Error&) {
        // Rethrows the error unless a newer state has replaced the log that was being read.
        if (tail_.number() >= newest_state()) throw;
        is_begun_ = false;
      }
    }
  }

  // Sends the replica the available changes. Returns false if the replica has gone.
  bool follow() {
    if (!is_begun_ && !begin()) return false;
    bool has_mark = false;
    if (!send_records(&has_mark)) return false;
    if (has_mark) return ship();
    if (tail_.is_lost()) {
      is_begun_ = false;
    } else {
      const Deadline slice = std::chrono::steady_clock::now() + kSlice;
      (void)checkpointer_->wait(checkpointer_->num_made() + 1, slice, /*is_patient=*/true);
    }
    return true;
  }

  uint64_t newest_state() const {
    const std::vector<uint64_t> numbers = state_numbers(directory_);
    check(!numbers.empty(), "disk_directory", directory_, "must have a state; leave it alone");
    return numbers.front();
  }

  // Waits for this store's first checkpoint, because files of an earlier store may lack some of
  // that store's changes. Returns false if the replica has gone.
  bool wait_for_first() {
    if (checkpointer_->num_made() > 0) return true;
    const uint64_t first = checkpointer_->ask();
    while (!socket_.has_ended()) {
      const Deadline slice = std::chrono::steady_clock::now() + kSlice;
      if (checkpointer_->wait(first, slice, /*is_patient=*/true)) return true;
    }
    return false;
  }

  // Sends the newest state, and receives the list of its rows that the replica lacks. Some of these
  // rows may belong to dead chunks and have been overwritten. Returns false if the replica has
  // gone.
  bool begin() {
    const uint64_t number = newest_state();
    tail_.begin(number);
    begin_ = tail_.position();
    const std::vector<std::byte> records = read_state_records(directory_, number);
    const StateMessage message{.num_pools = row_bytes_.size(), .record_bytes = records.size()};
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(row_bytes_.data(), row_bytes_.size() * sizeof(uint64_t)),
                     transport::part_of(records.data(), records.size())};
    Lacks lacks;
    if (!socket_.send(parts) || !socket_.read(&lacks, sizeof lacks)) return false;
    check(lacks.kind == Request::kLacks && lacks.count <= records.size() / sizeof(Row), "request",
          static_cast<uint32_t>(lacks.kind), "must be a replica's; install the same tengen");
    rows_.resize(lacks.count);
    is_begun_ = socket_.read(rows_.data(), rows_.size() * sizeof(Row));
    return is_begun_;
  }

  // Sends the available records, and notes the newest mark and the saved rows. Returns false if the
  // replica has gone.
  bool send_records(bool* has_mark) {
    while (const std::optional<LogFrame> frame = tail_.next()) {
      std::span<const std::byte>
          saved;  // not searched for saved rows, because the log's records also contain them
      if (const std::optional<LogMark> mark = mark_of(*frame, &saved)) {
        mark_ = *mark;
        saved_.assign(saved.begin(), saved.end());
        *has_mark = true;
      } else {
        find_saved(frame->payload, &rows_);
        if (!send(RecordsMessage{.record_bytes = frame->payload.size()}, frame->payload)) {
          return false;
        }
      }
    }
    return true;
  }

  // Sends the rows and the mark of the newest checkpoint. Returns false if the replica has gone.
  bool ship() {
    for (int num_left_out = 0;; ++num_left_out) {
      std::vector<Row> used_again;
      if (!send_rows(&used_again)) return false;
      if (used_again.empty() || num_left_out == kMaxLeftOut) break;
      // No row of a checkpoint is overwritten before the next mark. So if there is no later mark,
      // the overwritten rows do not belong to this checkpoint, and are not needed.
      bool has_later = false;
      if (!send_records(&has_later)) return false;
      if (!has_later) break;
      rows_.insert(rows_.end(), used_again.begin(), used_again.end());
    }
    const LogMark mark{mark_.position - begin_, mark_.begun_us};
    Shipped reply;
    if (!send(MarkMessage{.mark = mark, .record_bytes = saved_.size()}, saved_) ||
        !socket_.read(&reply, sizeof reply)) {
      return false;
    }
    check(reply.kind == Request::kShipped, "request", static_cast<uint32_t>(reply.kind),
          "must be a replica's; install the same tengen");
    const std::scoped_lock lock(shipped_mutex_);
    shipped_ = mark_;
    return true;
  }

  // Sends rows_, but moves overwritten rows to `used_again`. Returns false if the replica has gone.
  bool send_rows(std::vector<Row>* used_again) {
    std::vector<Row> rows = std::exchange(rows_, {});
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      Row row = rows[begin];
      check(row.pool < files_.size(), "pool", row.pool, "must be the store's; its log is damaged");
      // If a place was saved several times, the file contains the last row. An unreadable row is
      // skipped like an overwritten one; a store that resumes from the replica finds it damaged.
      row.checksum = files_[row.pool]->try_read(row.place, row_->data()).value_or(0);
      bool is_saved = false;
      for (end = begin; end < rows.size() && is_same_place(rows[end], row); ++end) {
        is_saved = is_saved || rows[end] == row;
      }
      if (!is_saved) {
        used_again->insert(used_again->end(), rows.begin() + static_cast<int64_t>(begin),
                           rows.begin() + static_cast<int64_t>(end));
      } else if (!send(RowMessage{.row = row}, {row_->data(), row_bytes_[row.pool]})) {
        return false;
      }
    }
    return true;
  }

  static bool is_same_place(const Row& a, const Row& b) {
    return std::tie(a.pool, a.place) == std::tie(b.pool, b.place);
  }

  template <class Message>
  bool send(const Message& message, std::span<const std::byte> bytes) {
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(bytes.data(), bytes.size())};
    return socket_.send(parts);
  }

  const std::string replica_name_;
  Checkpointer* const checkpointer_;
  const std::string directory_;
  LogTail tail_;
  bool is_begun_ = false;                        // whether the replica has a state
  uint64_t begin_ = 0;                           // the position after the state
  LogMark mark_{};                               // the newest mark
  std::vector<std::byte> saved_;                 // records of chunks in the mark's frame
  std::vector<std::unique_ptr<RowFile>> files_;  // row files by pool
  std::vector<uint64_t> row_bytes_;
  std::unique_ptr<transport::SharedMemory> row_;
  std::vector<Row> rows_;  // rows saved since the last mark
  std::mutex shipped_mutex_;
  std::optional<LogMark> shipped_;  // the last checkpoint that the replica has on disk
};

}  // namespace

std::unique_ptr<NetSession> replica_session(transport::Connection connection,
                                            const std::string& name, Store* store) {
  return std::make_unique<ReplicaSession>(std::move(connection), name, store);
}

}  // namespace tengen::store
