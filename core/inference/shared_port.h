#pragma once
// Many ports, one device: the rows of many workers form one batch, and several batches are in
// flight.
//
// A lane is the memory of one batch. It is filled by the workers, evaluated by its driver, read by
// the workers whose rows it holds, and then reused. While one lane is evaluated, others are filled
// and read, so neither side waits for the other:
//
//   worker threads   shared.work(ports)       descends trees, deposits rows, takes answers
//   driver threads   while (n = shared.next(lane)) { evaluate n rows; shared.done(lane); }
//
// A batch is sent to its device when it is full; when no worker could add a row and the device has
// fewer than two batches; or when the device has none and a quarter of a batch waits. It never
// waits for a worker that is itself waiting.
//
// Timing decides which rows share a batch. A port sees only its own rows, so its behaviour does not
// depend on timing, provided that an evaluation depends only on its row.

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

// One lane's memory, owned by the driver of the device.
struct LaneBuffers {
  uint8_t* rows;  // [capacity, layout.num_bytes()]
  float* policy;  // [capacity, num_actions] logits
  float* value;   // [capacity] in [-1, 1] for the side to play
  float*
      score;  // [capacity, 2] mean and standard deviation in points; null if no port needs scores
  size_t device;  // 0..; lanes of one device share its time
};

// Counters since the start.
struct SharedStats {
  uint64_t num_rows = 0;     // evaluated
  uint64_t num_batches = 0;  // evaluated
  double device_s = 0.0;     // with a batch on the device, summed over devices
  double wait_s = 0.0;       // of workers waiting for answers or for space, summed over workers
};

// Thread-safe: each worker thread calls work() once, one driver thread per lane calls next() and
// done(), and any thread may call stop() and stats().
class SharedPort {
 public:
  // Throws Error without at least one lane, one row of capacity and one worker.
  SharedPort(const RowLayout& layout, size_t num_actions, size_t capacity,
             const std::vector<LaneBuffers>& lanes, size_t num_workers);

  // Drives this thread's ports until they are finished or stop() was called. While the rows of one
  // port are evaluated, the others run. Blocks. If a port throws, calls stop() and rethrows.
  void work(std::span<Port* const> ports);

  // Blocks until the lane holds a batch and returns its number of rows; 0 when every worker has
  // left or stop() was called.
  size_t next(size_t lane);
  // Call when the lane holds the answers to the rows that next() returned.
  void done(size_t lane);
  // Ends all work soon; rows in flight are dropped.
  void stop();
  SharedStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kNoLane = SIZE_MAX;
  static constexpr size_t kMaxQueued = 2;  // one is being computed, one is next

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
    std::vector<Worker*> owners;  // of the rows; a worker may appear twice
    std::condition_variable due;  // its driver waits here
  };
  struct Device {
    size_t num_queued = 0;  // lanes that are kReady
    Clock::time_point busy_since;
  };
  // Rows of one port in flight: rows [first, first + count) of a lane answer the rows of the port's
  // buffers from `row` on.
  struct Piece {
    size_t lane, first, count, row;
  };
  struct Request {
    Port* port = nullptr;
    std::vector<Piece> pieces;
    bool is_open = false;  // between asking and done()
  };
  using Lock = std::unique_lock<std::mutex>;
  using Requests = std::vector<Request>;

  void serve(Worker& worker, Requests& requests);
  bool ask(Worker& worker, Requests& requests, Request& request, size_t num_rows);
  void write_piece(const Piece& piece, BatchBuffers& from);
  bool take_answers(Lock& lock, Requests& requests);
  template <class Predicate>
  bool wait(Lock& lock, Worker& worker, Requests& requests, Predicate&& is_ready);

  // The methods below need the lock.
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
  size_t num_workers_;          // that have not left
  size_t num_working_;          // that are not idle
  size_t open_ = kNoLane;       // the lane in which rows are reserved
  bool is_stopped_ = false;
  SharedStats stats_;
};

}  // namespace tengen
