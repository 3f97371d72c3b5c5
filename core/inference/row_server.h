#pragma once
// Central inference: evaluates the rows of many actors in batches.

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

// Statistics since the start of the server. Times are measured in the driver thread.
struct RowStats {
  uint64_t num_batches = 0;
  uint64_t num_rows = 0;
  uint64_t num_lost = 0;  // sessions that ended before close()
  double device_s = 0;    // time between next() and done()
  double copy_s = 0;      // time for copies of rows and outputs
  double wait_s = 0;      // time without a pending request
};

struct RowServerSettings {
  size_t max_rows;     // maximum number of rows per batch, and of one session
  size_t min_rows;     // number of rows that a batch waits for, 1 to max_rows
  double max_wait_s;   // maximum time that a request waits for min_rows, 0 or more
  size_t most_rows;    // maximum number of rows of all sessions
  size_t least_bytes;  // minimum input size of a one-session batch to evaluate it in place
};

// A server that evaluates the requests of many sessions in batches. After start(), a batch begins
// when the device is idle and at least min_rows rows wait, or the oldest request has waited for
// max_wait_s. If an actor dies, its rows are dropped. One thread, the driver, runs
//
//     while (size_t num_rows = server.next()) { evaluate(num_rows); server.done(version, model); }
//
// Source: Espeholt et al. 2020, "SEED RL", section 3.1. Differs from the paper: the batch size is
// variable.
class RowServer {
 public:
  // Throws Error if descriptors or memory are exhausted.
  RowServer(RowColumns columns, const RowServerSettings& settings);
  RowServer(const RowServer&) = delete;
  RowServer& operator=(const RowServer&) = delete;
  ~RowServer();

  // The methods from here to stats() are thread-safe and do not wait for the driver.

  // Adds a session. Takes ownership of `descriptor`, a connected socket, and of
  // `memory_descriptor`, its shared memory, or -1 if rows are sent through the socket. Throws Error
  // if memory is exhausted, too many rows are served, or close() has been called.
  void add(int descriptor, int memory_descriptor, size_t num_rows);
  // Allows batches to begin. Call start() when a model has been loaded.
  void start();
  // Makes next() return 0 after the current batch.
  void stop();
  // Returns the number of sessions, including those that the driver has not opened yet.
  size_t num_sessions() const { return num_sessions_; }
  RowStats stats() const;

  // Only the driver thread may call the methods from here on.

  // Blocks until a batch is ready, and returns its number of rows; 0 after stop().
  size_t next();
  // Returns the only session of the batch if its rows are evaluated in place. Otherwise returns
  // null, and the rows are in batch(). The session's arrays are valid while the pointer exists.
  const std::shared_ptr<RowSession>& alone() const { return alone_; }
  // Returns the unique ID of the session alone(), or 0 if alone() is null.
  uint64_t alone_key() const { return alone_key_; }
  const RowMemory& batch() const { return batch_; }
  const RowColumns& columns() const { return columns_; }
  // Sends the outputs of the current batch to its actors.
  void done(int64_t version, int64_t model);
  // Sends every actor an error with `reason` instead of outputs.
  void refuse(std::string_view reason);
  // Ends all sessions. Later calls of add() throw.
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
  size_t input_bytes_ = 0;  // per row
  RowMemory batch_;
  transport::Readiness readiness_;
  int bell_[2];  // a pipe that wakes the driver

  std::atomic<bool> has_model_{false};
  std::atomic<bool> is_stopping_{false};
  std::atomic<size_t> num_sessions_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<RowSession>> new_sessions_;  // GUARDED_BY(mutex_)
  size_t num_rows_ = 0;                                    // GUARDED_BY(mutex_)
  bool has_ended_ = false;                                 // GUARDED_BY(mutex_)
  RowStats stats_;                                         // GUARDED_BY(mutex_)

  // Used only by the driver.
  Sessions sessions_;
  uint64_t num_keys_ = 0;
  std::deque<uint64_t> pending_;
  size_t num_pending_ = 0;  // rows of the pending sessions
  std::vector<uint64_t> fired_;
  size_t num_fired_ = 0;  // rows of the current batch
  std::shared_ptr<RowSession> alone_;
  uint64_t alone_key_ = 0;
  Clock::time_point fired_at_{};
};

}  // namespace tengen
