#include "inference/shared_port.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"

namespace tengen {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SharedPort::SharedPort(const RowLayout& layout, size_t num_actions, size_t capacity,
                       const std::vector<LaneBuffers>& lanes, size_t num_workers)
    : layout_(layout),
      num_actions_(num_actions),
      capacity_(capacity),
      num_workers_(num_workers),
      num_working_(num_workers) {
  if (lanes.empty() || capacity == 0 || num_workers == 0) {
    throw Error("lanes (" + std::to_string(lanes.size()) + " of " + std::to_string(capacity) +
                " rows for " + std::to_string(num_workers) +
                " workers) must all be at least 1; raise them");
  }
  for (const LaneBuffers& buffers : lanes) {
    lanes_.emplace_back().buffers = buffers;
    devices_.resize(std::max(devices_.size(), buffers.device + 1));
  }
}

void SharedPort::work(std::span<Port* const> ports) {
  Worker* worker = nullptr;
  {
    const Lock lock(mutex_);
    worker = &workers_.emplace_back();
  }
  Requests requests;
  for (Port* port : ports) requests.push_back({port, {}, false});
  try {
    serve(*worker, requests);
  } catch (...) {
    stop();
    throw;
  }
  const Lock lock(mutex_);
  --num_workers_;
  --num_working_;
  if (open_ != kNoLane) send_if_due(open_);
  if (num_workers_ == 0) {
    for (Lane& lane : lanes_) lane.due.notify_all();
  }
}

// Serves the ports of a worker in rotation, so that the thread always waits for its oldest request.
void SharedPort::serve(Worker& worker, Requests& requests) {
  size_t num_finished = 0;
  while (num_finished < requests.size()) {
    for (Request& request : requests) {
      if (request.port == nullptr) continue;
      if (request.is_open) {
        Lock lock(mutex_);
        if (!wait(lock, worker, requests, [&] { return request.pieces.empty(); })) return;
        lock.unlock();
        request.is_open = false;
        request.port->done();
      }
      const int num_rows = request.port->next();
      if (num_rows == 0) {
        request.port = nullptr;
        ++num_finished;
      } else if (!ask(worker, requests, request, static_cast<size_t>(num_rows))) {
        return;
      }
    }
  }
}

// Copies the rows of the port into as many lanes as needed. Returns false after stop().
bool SharedPort::ask(Worker& worker, Requests& requests, Request& request, size_t num_rows) {
  request.is_open = true;
  Lock lock(mutex_);
  // Frees lanes for other threads, because this thread may not read outputs again for a long time.
  take_answers(lock, requests);
  for (size_t row = 0; row < num_rows;) {
    worker.wants_room = true;
    const bool goes_on = wait(lock, worker, requests, [&] { return open_lane(); });
    worker.wants_room = false;
    if (!goes_on) return false;
    const size_t index = open_;
    Lane& lane = lanes_[index];
    const Piece piece{index, lane.num_reserved,
                      std::min(num_rows - row, capacity_ - lane.num_reserved), row};
    lane.num_reserved += piece.count;
    lane.num_unread += piece.count;
    lane.owners.push_back(&worker);
    if (lane.num_reserved == capacity_) open_ = kNoLane;
    request.pieces.push_back(piece);
    row += piece.count;
    lock.unlock();
    write_piece(piece, request.port->buffers());
    lock.lock();
    lane.num_written += piece.count;
    send_if_due(index);
  }
  return !is_stopped_;
}

void SharedPort::write_piece(const Piece& piece, BatchBuffers& from) {
  const size_t row_bytes = layout_.num_bytes();
  uint8_t* to = lanes_[piece.lane].buffers.rows + piece.first * row_bytes;
  for (size_t i = 0; i < piece.count; ++i) {
    write_row(layout_, from.planes_row(static_cast<int>(piece.row + i)), to + i * row_bytes);
  }
}

// Copies available outputs to the ports that requested them. Returns whether it copied any.
bool SharedPort::take_answers(Lock& lock, Requests& requests) {
  bool any = false;
  for (Request& request : requests) {
    for (size_t i = 0; i < request.pieces.size();) {
      const Piece piece = request.pieces[i];
      Lane& lane = lanes_[piece.lane];
      if (lane.state != LaneState::kAnswered) {
        ++i;
        continue;
      }
      lock.unlock();
      BatchBuffers& to = request.port->buffers();
      std::memcpy(to.policy_row(static_cast<int>(piece.row)),
                  lane.buffers.policy + piece.first * num_actions_,
                  piece.count * num_actions_ * sizeof(float));
      std::memcpy(to.value.data() + piece.row, lane.buffers.value + piece.first,
                  piece.count * sizeof(float));
      if (float* score = to.score_row(static_cast<int>(piece.row)); score != nullptr) {
        std::memcpy(score, lane.buffers.score + 2 * piece.first, 2 * piece.count * sizeof(float));
      }
      lock.lock();
      request.pieces.erase(request.pieces.begin() + static_cast<ptrdiff_t>(i));
      lane.num_unread -= piece.count;
      if (lane.num_unread == 0) free_lane(piece.lane);
      any = true;
    }
  }
  return any;
}

// Waits until is_ready() is true. Meanwhile reads available outputs, because unread outputs could
// block the lane for which this worker waits. Returns false after stop().
template <class Predicate>
bool SharedPort::wait(Lock& lock, Worker& worker, Requests& requests, Predicate&& is_ready) {
  while (!is_stopped_ && !is_ready()) {
    if (take_answers(lock, requests)) continue;
    worker.is_idle = true;
    --num_working_;
    if (open_ != kNoLane) send_if_due(open_);
    const Clock::time_point start = Clock::now();
    worker.woken.wait(lock, [&] { return !worker.is_idle; });
    stats_.wait_s += seconds_since(start);
  }
  return !is_stopped_;
}

// Returns whether a lane is open. If none is open, opens a free lane, preferably on the least busy
// device.
bool SharedPort::open_lane() {
  if (open_ != kNoLane) return true;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].state != LaneState::kFree) continue;
    if (open_ == kNoLane || devices_[lanes_[i].buffers.device].num_queued <
                                devices_[lanes_[open_].buffers.device].num_queued) {
      open_ = i;
    }
  }
  if (open_ == kNoLane) return false;
  lanes_[open_].state = LaneState::kFilling;
  return true;
}

void SharedPort::free_lane(size_t index) {
  Lane& lane = lanes_[index];
  lane.state = LaneState::kFree;
  lane.num_reserved = 0;
  lane.num_written = 0;
  for (Worker& worker : workers_) {
    if (worker.wants_room) wake(worker);
  }
}

bool SharedPort::is_due(const Lane& lane) const {
  if (lane.num_reserved == 0 || lane.num_written < lane.num_reserved) return false;
  if (lane.num_reserved == capacity_) return true;
  const size_t num_queued = devices_[lane.buffers.device].num_queued;
  if (num_working_ == 0) return num_queued < kMaxQueued;
  return num_queued == 0 && 4 * lane.num_reserved >= capacity_;
}

void SharedPort::send_if_due(size_t index) {
  Lane& lane = lanes_[index];
  if (lane.state != LaneState::kFilling || !is_due(lane)) return;
  if (open_ == index) open_ = kNoLane;
  lane.state = LaneState::kReady;
  Device& device = devices_[lane.buffers.device];
  if (device.num_queued++ == 0) device.busy_since = Clock::now();
  lane.due.notify_all();
}

size_t SharedPort::next(size_t index) {
  Lock lock(mutex_);
  Lane& lane = lanes_.at(index);
  lane.due.wait(lock, [&] { return lane.state == LaneState::kReady || is_over(); });
  return is_over() ? 0 : lane.num_reserved;
}

void SharedPort::done(size_t index) {
  const Lock lock(mutex_);
  Lane& lane = lanes_.at(index);
  if (lane.state != LaneState::kReady) {
    throw Error("lane (" + std::to_string(index) + ") has no batch; call next() before done()");
  }
  lane.state = LaneState::kAnswered;
  stats_.num_rows += lane.num_reserved;
  stats_.num_batches += 1;
  Device& device = devices_[lane.buffers.device];
  if (--device.num_queued == 0) stats_.device_s += seconds_since(device.busy_since);
  for (Worker* worker : lane.owners) wake(*worker);
  lane.owners.clear();
  if (open_ != kNoLane) send_if_due(open_);
}

void SharedPort::stop() {
  const Lock lock(mutex_);
  is_stopped_ = true;
  for (Worker& worker : workers_) wake(worker);
  for (Lane& lane : lanes_) lane.due.notify_all();
}

SharedStats SharedPort::stats() const {
  const Lock lock(mutex_);
  return stats_;
}

void SharedPort::wake(Worker& worker) {
  if (!worker.is_idle) return;
  worker.is_idle = false;
  ++num_working_;
  worker.woken.notify_one();
}

}  // namespace tengen
