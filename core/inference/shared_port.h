#pragma once
// Combines the rows of many ports into batches for devices, with several batches in flight.
//
// A lane is the memory of one batch. Workers fill the lane, its driver evaluates the rows, the
// workers read their outputs, and the lane is reused. While one lane is evaluated, other lanes are
// filled and read, so workers and drivers do not wait for each other:
//
//   worker threads   shared.work(ports)       descends trees, writes rows, reads outputs
//   driver threads   while (n = shared.next(lane)) { evaluate n rows; shared.done(lane); }
//
// A batch is sent to its device if the batch is full, if no worker can add a row and the device has
// fewer than two batches, or if the device is idle and the batch is at least a quarter full. So a
// batch never waits for a worker that is itself waiting.
//
// Timing determines which rows share a batch. A port sees only its own rows, so its behaviour does
// not depend on timing if an evaluation depends only on its row.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "inference/packed_rows.h"
#include "inference/port.h"

namespace tengen {

// The memory of one lane, owned by the lane's driver.
struct LaneBuffers {
  uint8_t* rows;  // [capacity, layout.num_bytes()]
  float* policy;  // [capacity, num_actions] logits
  float* value;   // [capacity] in [-1, 1] for the side to move
  float*
      score;  // [capacity, 2] mean and standard deviation in points; null if no port needs scores
  size_t device;  // index of the device, from 0; several lanes may share it
};

// Statistics since the creation of the port.
struct SharedStats {
  uint64_t num_rows = 0;     // evaluated rows
  uint64_t num_batches = 0;  // evaluated batches
  double device_s = 0.0;     // time with a batch on the device, summed over devices
  double wait_s = 0.0;       // time waiting for outputs or space, summed over workers
};

// A port shared by threads: each worker thread calls work() once, one driver thread per lane calls
// next() and done(), and any thread may call stop() and stats().
class SharedPort {
 public:
  // Throws Error unless there is at least one lane, one row of capacity and one worker.
  SharedPort(const RowLayout& layout, size_t num_actions, size_t capacity,
             const std::vector<LaneBuffers>& lanes, size_t num_workers);

  // Runs `ports` on this thread until they are finished or stop() is called. While the rows of one
  // port are evaluated, other ports run. Blocks. If a port throws, calls stop() and rethrows.
  void work(std::span<Port* const> ports);

  // Blocks until the lane holds a batch and returns its number of rows; 0 if every worker has
  // returned from work() or stop() has been called.
  size_t next(size_t lane);
  // Hands the outputs in the lane to the workers. Call done() after the batch has been evaluated.
  void done(size_t lane);
  // Makes work() and next() return soon. Rows in flight are dropped.
  void stop();
  SharedStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kNoLane = SIZE_MAX;
  static constexpr size_t kMaxQueued = 2;  // one batch is evaluated, one waits

  enum class LaneState : uint8_t { kFree, kFilling, kReady, kAnswered };
  struct Worker {
    std::condition_variable woken;
    bool is_idle = false;
    bool wants_room = false;
  };
  struct Lane {
    LaneBuffers buffers{};
    LaneState state = LaneState::kFree;
    size_t num_reserved = 0;
    size_t num_written = 0;
    size_t num_unread = 0;
    std::vector<Worker*> owners;  // workers with rows in the lane; may have duplicates
    std::condition_variable due;  // wakes the driver of the lane
  };
  struct Device {
    size_t num_queued = 0;  // lanes that are kReady
    Clock::time_point busy_since;
  };
  // Rows of a port in flight: `count` rows from `first` on in the lane, which correspond to those
  // from `row` on in the port's buffers.
  struct Piece {
    size_t lane, first, count, row;
  };
  struct Request {
    Port* port = nullptr;
    std::vector<Piece> pieces;
    bool is_open = false;  // between ask() and done()
  };
  using Lock = std::unique_lock<std::mutex>;
  using Requests = std::vector<Request>;

  void serve(Worker& worker, Requests& requests);
  bool ask(Worker& worker, Requests& requests, Request& request, size_t num_rows);
  void write_piece(const Piece& piece, BatchBuffers& from);
  bool take_answers(Lock& lock, Requests& requests);
  template <class Predicate>
  bool wait(Lock& lock, Worker& worker, Requests& requests, Predicate&& is_ready);

  // The methods below require that the caller holds `mutex_`.
  bool open_lane();
  void free_lane(size_t lane);
  void send_if_due(size_t lane);
  bool is_due(const Lane& lane) const;
  void wake(Worker& worker);
  bool is_over() const { return is_stopped_ || num_workers_ == 0; }

  const RowLayout layout_;
  const size_t num_actions_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<Lane> lanes_;
  std::vector<Device> devices_;
  std::deque<Worker> workers_;  // all workers
  size_t num_workers_;          // workers that have not returned from work()
  size_t num_working_;          // workers that are not idle
  size_t open_ = kNoLane;       // index of the lane that is being filled
  bool is_stopped_ = false;
  SharedStats stats_;
};

}  // namespace tengen
