#include "inference/shared_port.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/testing.h"
#include "inference/testing.h"

using namespace tengen;

namespace {

constexpr std::array<size_t, 3> kShape = {2, 4, 4};
constexpr size_t kNumActions = 5;
constexpr RowLayout kLayout{kShape, true};

// The "network's" answer to planes.
float answer(const float* planes, size_t action) {
  uint64_t hash = action;
  for (size_t i = 0; i < kLayout.num_entries(); ++i) hash = hash * 31 + (planes[i] != 0.0f);
  return static_cast<float>(mix64(hash) >> 40);
}

constexpr int kMaxRows = 8;  // rows of a port

// Requests batches of given sizes with distinct rows, and checks that each row gets its own answer.
class AskingPort final : public Port {
 public:
  AskingPort(uint64_t id, std::vector<int> sizes) : id_(id), sizes_(std::move(sizes)) {}

  int next() override {
    TENGEN_CHECK(num_rows_ == 0);
    if (num_asked_ == sizes_.size()) return 0;
    num_rows_ = sizes_[num_asked_++];
    for (int row = 0; row < num_rows_; ++row) {
      const uint64_t bits = draw();
      for (size_t i = 0; i < kLayout.num_entries(); ++i) {
        buffers_.planes_row(row)[i] = static_cast<float>(bits >> i & 1);
      }
    }
    return num_rows_;
  }
  void done() override {
    for (int row = 0; row < num_rows_; ++row) {
      for (size_t action = 0; action < kNumActions; ++action) {
        TENGEN_CHECK(buffers_.policy_row(row)[action] == answer(buffers_.planes_row(row), action));
      }
      TENGEN_CHECK(buffers_.value[static_cast<size_t>(row)] ==
                   answer(buffers_.planes_row(row), kNumActions));
      if (const float* score = buffers_.score_row(row)) {
        TENGEN_CHECK(score[0] == answer(buffers_.planes_row(row), kNumActions + 1));
        TENGEN_CHECK(score[1] == answer(buffers_.planes_row(row), kNumActions + 2));
      }
    }
    num_answered_ += static_cast<uint64_t>(num_rows_);
    num_rows_ = 0;
  }
  BatchBuffers& buffers() override { return buffers_; }
  uint64_t num_answered() const { return num_answered_; }

 private:
  uint64_t draw() { return mix64(id_ * 1000003 + ++num_draws_); }

  uint64_t id_;
  std::vector<int> sizes_;
  size_t num_asked_ = 0;
  BatchBuffers buffers_{kMaxRows, kShape, kNumActions, id_ % 3 != 0};  // most ports ask for scores
  uint64_t num_draws_ = 0;
  int num_rows_ = 0;
  uint64_t num_answered_ = 0;
};

std::vector<int> random_sizes(uint64_t seed, size_t num_batches) {
  std::vector<int> sizes;
  for (size_t i = 0; i < num_batches; ++i) {
    sizes.push_back(1 + static_cast<int>(mix64(seed * 7919 + i) % kMaxRows));
  }
  return sizes;
}

struct Setup {
  size_t num_workers = 2;
  size_t ports_per_worker = 2;
  size_t num_lanes = 3;
  size_t num_devices = 1;
  size_t capacity = 16;
};

// Workers and lanes, and what the test observed.
struct Bench {
  explicit Bench(const Setup& with)
      : setup(with),
        memory(kLayout, kNumActions, with.capacity, with.num_lanes, with.num_devices),
        shared(kLayout, kNumActions, with.capacity, memory.buffers(), with.num_workers) {}

  void evaluate(size_t lane, size_t num_rows) {
    TENGEN_CHECK(num_rows <= setup.capacity);
    for (size_t row = 0; row < num_rows; ++row) {
      const std::vector<float> planes = memory.planes(lane, row);
      for (size_t action = 0; action < kNumActions; ++action) {
        memory.policy(lane, row)[action] = answer(planes.data(), action);
      }
      memory.value(lane, row) = answer(planes.data(), kNumActions);
      memory.score(lane, row)[0] = answer(planes.data(), kNumActions + 1);
      memory.score(lane, row)[1] = answer(planes.data(), kNumActions + 2);
    }
  }

  // Makes the ports of every worker; port i requests batches of sizes(i).
  void fill(const std::function<std::vector<int>(size_t)>& sizes) {
    while (ports.size() < setup.num_workers * setup.ports_per_worker) {
      ports.push_back(std::make_unique<AskingPort>(ports.size(), sizes(ports.size())));
    }
  }

  // Drives every lane with `drive(lane, num_rows)`, which evaluates, until the workers have left.
  void run(const std::function<void(size_t, size_t)>& drive) {
    std::vector<std::thread> threads;
    for (size_t worker = 0; worker < setup.num_workers; ++worker) {
      std::vector<Port*> mine;
      for (size_t i = 0; i < setup.ports_per_worker; ++i) {
        mine.push_back(ports[worker * setup.ports_per_worker + i].get());
      }
      threads.emplace_back([this, mine] { shared.work(mine); });
    }
    for (size_t lane = 0; lane < setup.num_lanes; ++lane) {
      threads.emplace_back([this, lane, &drive] {
        while (const size_t num_rows = shared.next(lane)) {
          drive(lane, num_rows);
          shared.done(lane);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Setup setup;
  LaneMemory memory;
  SharedPort shared;
  std::vector<std::unique_ptr<AskingPort>> ports;
};

// Every row is answered exactly once and with its own answer, whatever shares the lanes.
void check_answers(const Setup& setup) {
  Bench bench(setup);
  bench.fill([](size_t port) { return random_sizes(port, 150); });
  bench.run([&](size_t lane, size_t num_rows) { bench.evaluate(lane, num_rows); });
  uint64_t num_answered = 0;
  for (const auto& port : bench.ports) {
    TENGEN_CHECK(port->next() == 0);
    num_answered += port->num_answered();
  }
  const SharedStats stats = bench.shared.stats();
  TENGEN_CHECK(stats.num_rows == num_answered && num_answered > 0);
  TENGEN_CHECK(stats.num_batches >= num_answered / setup.capacity);
}

// A slow device answers a batch only after the next one was handed over. So two batches must always
// be in flight: workers must fill the second without waiting for the first.
void check_two_under_way() {
  Setup setup;
  setup.num_workers = 3;
  setup.ports_per_worker = 3;
  setup.capacity = 12;
  Bench bench(setup);
  bench.fill([](size_t port) { return random_sizes(port, 50); });
  std::mutex mutex;
  std::condition_variable handed_over;
  int num_handed_over = 0;
  bench.run([&](size_t lane, size_t num_rows) {
    std::unique_lock lock(mutex);
    const int mine = ++num_handed_over;
    handed_over.notify_all();
    // At the end no other batch may follow.
    if (mine <= 20) handed_over.wait(lock, [&] { return num_handed_over > mine; });
    lock.unlock();
    bench.evaluate(lane, num_rows);
  });
  TENGEN_CHECK(num_handed_over > 20);
}

// Checks which batches a single worker's rows form on a device that answers no batch before the
// next has arrived; smallest first.
void check_batches(const std::vector<std::vector<int>>& sizes,
                   const std::vector<size_t>& expected) {
  Setup setup;
  setup.num_workers = 1;
  setup.ports_per_worker = sizes.size();
  setup.num_lanes = 4;
  setup.capacity = 8;
  Bench bench(setup);
  bench.fill([&](size_t port) { return sizes[port]; });
  std::mutex mutex;
  std::condition_variable handed_over;
  std::vector<size_t> batches;
  bench.run([&](size_t lane, size_t num_rows) {
    std::unique_lock lock(mutex);
    batches.push_back(num_rows);
    handed_over.notify_all();
    // Lanes are filled in order, while two drivers may arrive in any order.
    const size_t next = std::min(lane + 2, expected.size());
    handed_over.wait(lock, [&] { return batches.size() >= next; });
    lock.unlock();
    bench.evaluate(lane, num_rows);
  });
  // Drivers of two lanes that became due at the same time may arrive in either order.
  std::sort(batches.begin(), batches.end());
  TENGEN_CHECK(batches == expected);
}

// One worker with one port: nobody else can add a row, so its batch starts immediately.
void check_lone_worker() {
  Setup setup;
  setup.num_workers = 1;
  setup.ports_per_worker = 1;
  setup.num_lanes = 1;
  setup.capacity = 64;
  check_answers(setup);
}

class FailingPort final : public Port {
 public:
  int next() override { throw Error("disk (full) must have room; free some"); }
  void done() override {}
  BatchBuffers& buffers() override { return buffers_; }

 private:
  BatchBuffers buffers_{1, kShape, kNumActions};
};

// An exception in a port leaves its work(), and ends the other workers and the drivers.
void check_failure() {
  Setup setup;
  setup.num_workers = 3;
  Bench bench(setup);
  FailingPort failing;
  std::atomic<bool> was_thrown{false};
  std::thread thread([&] {
    while (bench.shared.stats().num_batches < 3) std::this_thread::yield();
    Port* ports[] = {&failing};
    try {
      bench.shared.work(ports);
    } catch (const Error&) {
      was_thrown = true;
    }
  });
  std::vector<std::unique_ptr<AskingPort>> ports;
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < 2; ++worker) {
    ports.push_back(std::make_unique<AskingPort>(worker, random_sizes(worker, 100000)));
    threads.emplace_back([&bench, port = ports.back().get()] {
      Port* mine[] = {port};
      bench.shared.work(mine);
    });
  }
  for (size_t lane = 0; lane < setup.num_lanes; ++lane) {
    threads.emplace_back([&bench, lane] {
      while (const size_t num_rows = bench.shared.next(lane)) {
        bench.evaluate(lane, num_rows);
        bench.shared.done(lane);
      }
    });
  }
  for (std::thread& one : threads) one.join();
  thread.join();
  TENGEN_CHECK(was_thrown && bench.shared.next(0) == 0);
}

// If a device fails, stop() releases workers that wait for its answers.
void check_stop_while_waiting() {
  Setup setup;
  setup.num_workers = 2;
  setup.num_lanes = 2;
  Bench bench(setup);
  std::atomic<int> num_batches{0};
  bench.fill([](size_t port) { return random_sizes(port, 100000); });
  bench.run([&](size_t lane, size_t num_rows) {
    if (++num_batches == 10) {
      bench.shared.stop();
    } else {
      bench.evaluate(lane, num_rows);
    }
  });
  TENGEN_CHECK(num_batches >= 10);
}

void check_misuse() {
  LaneMemory memory(kLayout, kNumActions, 4, 1);
  TENGEN_CHECK(throws([&] { SharedPort(kLayout, kNumActions, 4, {}, 1); }));
  TENGEN_CHECK(throws([&] { SharedPort(kLayout, kNumActions, 0, memory.buffers(), 1); }));
  TENGEN_CHECK(throws([&] { SharedPort(kLayout, kNumActions, 4, memory.buffers(), 0); }));
  SharedPort shared(kLayout, kNumActions, 4, memory.buffers(), 1);
  TENGEN_CHECK(throws([&] { shared.done(0); }));
}

}  // namespace

int main() {
  for (const size_t num_workers : {1, 2, 5}) {
    for (const size_t num_lanes : {1, 2, 4}) {
      for (const size_t capacity : {1, 5, 64}) {
        Setup setup;
        setup.num_workers = num_workers;
        setup.num_lanes = num_lanes;
        setup.capacity = capacity;
        check_answers(setup);
        setup.ports_per_worker = 1;
        check_answers(setup);
      }
    }
  }
  Setup two_devices;
  two_devices.num_lanes = 6;
  two_devices.num_devices = 2;
  two_devices.ports_per_worker = 4;
  check_answers(two_devices);
  check_lone_worker();
  check_two_under_way();
  // An idle device gets a quarter of a batch, but no less while the worker is still working.
  check_batches({{1}, {1}, {8}}, {2, 8});
  // A device with one batch gets the rest when the worker can add nothing.
  check_batches({{8}, {2}, {2}}, {4, 8});
  // A device with two batches gets no third one before it is full.
  check_batches({{8, 6}, {8}, {2}}, {8, 8, 8});
  check_failure();
  check_stop_while_waiting();
  check_misuse();
  return 0;
}
