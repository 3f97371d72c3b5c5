#include "store/clients/part_worker.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using namespace tengen::store;

namespace {

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

// While the user is busy, the worker's thread runs all parts of the work, in each round.
void check_alone() {
  PartWorker worker;
  worker.finish();
  TENGEN_CHECK(worker.is_done());
  for (uint32_t round = 1; round < 50; ++round) {
    std::vector<uint32_t> counts(round);
    std::set<std::thread::id> threads;
    worker.begin(round, [&](uint32_t part) {
      ++counts[part];
      threads.insert(std::this_thread::get_id());
    });
    while (!worker.is_done()) std::this_thread::yield();
    TENGEN_CHECK(threads.size() == 1 && threads.count(std::this_thread::get_id()) == 0);
    worker.finish();
    for (const uint32_t count : counts) TENGEN_CHECK(count == 1);
  }
}

// finish() runs the parts that have not begun, and waits for the part that the thread has begun.
void check_help() {
  constexpr uint32_t kParts = 5;
  PartWorker worker;
  std::atomic<bool> is_begun = false;
  std::atomic<uint32_t> num_helped = 0;
  const std::thread::id user = std::this_thread::get_id();
  std::vector<uint32_t> counts(kParts);
  worker.begin(kParts, [&](uint32_t part) {
    if (std::this_thread::get_id() == user) {
      ++num_helped;
    } else {
      is_begun = true;  // the thread stays in this part until the user has run the other parts
      while (num_helped < kParts - 1) std::this_thread::yield();
    }
    ++counts[part];
  });
  wait_until(is_begun);
  TENGEN_CHECK(!worker.is_done());
  worker.finish();
  TENGEN_CHECK(worker.is_done());
  for (const uint32_t count : counts) TENGEN_CHECK(count == 1);
}

// The destructor waits for parts that have begun, and starts no other part.
void check_end() {
  std::atomic<bool> is_begun = false;
  std::atomic<bool> may_end = false;
  std::atomic<uint32_t> num_done = 0;
  std::thread releaser;
  {
    PartWorker worker;
    worker.begin(1000, [&](uint32_t) {
      is_begun = true;
      wait_until(may_end);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++num_done;
    });
    wait_until(is_begun);
    releaser = std::thread([&] { may_end = true; });
  }
  releaser.join();
  TENGEN_CHECK(num_done >= 1 && num_done < 1000);
}

}  // namespace

int main() {
  check_alone();
  check_help();
  check_end();
  return 0;
}
