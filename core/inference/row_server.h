#pragma once
// Central inference: the rows of many actors become one batch, and each gets its own answers.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inference/row_memory.h"
#include "inference/row_session.h"
#include "transport/readiness.h"

namespace tengen {

// Since the start; seconds are of the thread that drives.
struct RowStats {
  uint64_t num_batches = 0;
  uint64_t num_rows = 0;
  uint64_t num_lost = 0;  // sessions that ended before the server did
  double device_s = 0;    // between next() and done()
  double copy_s = 0;      // gathering rows and handing out answers
  double wait_s = 0;      // in which no request waited
};

struct RowServerSettings {
  size_t max_rows;     // of a batch, at least those of any session
  size_t min_rows;     // that a batch waits for, 1 to max_rows
  double max_wait_s;   // how long a request waits for them at most, 0 or more
  size_t most_rows;    // of all sessions together
  size_t least_bytes;  // of the inputs of a session that are evaluated in place where it is alone
};

// Sessions and their batches. A batch is fired when the device is idle and min_rows wait, or the
// oldest request has waited max_wait_s; none before start(). An actor that dies takes its rows with
// it, and nobody waits for it. One thread drives it:
//
//   while (size_t num_rows = server.next()) { evaluate(num_rows); server.done(version, model); }
//
// Source: Espeholt et al. 2020, "SEED RL", section 3.1. Differs from it: a batch has no fixed size.
class RowServer {
 public:
  // Throws Error where the system has no descriptors or memory.
  RowServer(RowColumns columns, const RowServerSettings& settings);
  RowServer(const RowServer&) = delete;
  RowServer& operator=(const RowServer&) = delete;
  ~RowServer();

  // For any thread; they do not wait for the driver.

  // Takes over a connected socket, and the descriptor of the memory that both share, -1 where rows
  // travel on the stream. Throws Error where there is no memory, too many rows are served, or the
  // server has ended; both are closed then too.
  void add(int descriptor, int memory_descriptor, size_t num_rows);
  // Lets batches be fired: there is a model.
  void start();
  // Ends next() after the batch that is going on.
  void stop();
  // Those that are open, and those that wait to be.
  size_t num_sessions() const { return num_sessions_; }
  RowStats stats() const;

  // For the thread that drives.

  // Returns the rows of the next batch, 0 after stop(). Blocks.
  size_t next();
  // The session whose rows are the whole batch and are to be evaluated where they lie; none where
  // the rows are those of batch(). Its arrays live as long as the pointer.
  const std::shared_ptr<RowSession>& alone() const { return alone_; }
  // A number that no other session ever has, 0 where there is none.
  uint64_t alone_key() const { return alone_key_; }
  const RowMemory& batch() const { return batch_; }
  const RowColumns& columns() const { return columns_; }
  // Hands out the answers to the batch.
  void done(int64_t version, int64_t model);
  // Tells every actor why there are no answers.
  void refuse(std::string_view reason);
  // Ends every session; no other is taken.
  void close();

 private:
  using Clock = RowSession::Clock;
  using Sessions = std::unordered_map<uint64_t, std::shared_ptr<RowSession>>;

  bool is_due() const;
  double timeout_s() const;
  void wait();
  void take_new_sessions();
  void serve(uint64_t key, const transport::Readiness::Event& event, Clock::time_point now);
  void watch(uint64_t key, RowSession& session);
  void lose(uint64_t key);
  size_t fire();
  void ring();

  const RowColumns columns_;
  const RowServerSettings settings_;
  size_t input_bytes_ = 0;  // of a row
  RowMemory batch_;
  transport::Readiness readiness_;
  int bell_[2];  // to wake the driver: what is written to the second comes from the first

  std::atomic<bool> has_model_{false};
  std::atomic<bool> is_stopping_{false};
  std::atomic<size_t> num_sessions_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<RowSession>> new_sessions_;  // GUARDED_BY(mutex_)
  size_t num_rows_ = 0;                                    // GUARDED_BY(mutex_)
  bool has_ended_ = false;                                 // GUARDED_BY(mutex_)
  RowStats stats_;                                         // GUARDED_BY(mutex_)

  // The driver's alone.
  Sessions sessions_;
  uint64_t num_keys_ = 0;
  std::deque<uint64_t> pending_;
  size_t num_pending_ = 0;  // rows of them
  std::vector<uint64_t> fired_;
  size_t num_fired_ = 0;  // rows of them
  std::shared_ptr<RowSession> alone_;
  uint64_t alone_key_ = 0;
  Clock::time_point fired_at_{};
};

}  // namespace tengen
