#include "transport/lifeline.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/platform.h"

namespace tengen::transport {
namespace {

constexpr double kTickS = 0.05;
// The maximum time that one tick counts, plus the time for which this thread waited for a CPU. So
// even a long suspension of the process counts as at most two ticks.
constexpr double kMostTickS = 2 * kTickS;
// If the system does not report waits for the CPU: a process that uses less than this share of a
// core counts as idle, so its wall-clock time counts towards the grace period.
constexpr double kLeastShare = 0.01;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The seconds for which each thread of this process was runnable without a CPU, by thread ID. Empty
// if the system does not report these waits.
using Waits = std::map<std::string, double>;

Waits read_waits() {
  Waits waits;
  try {
    std::error_code error;
    std::filesystem::directory_iterator thread("/proc/self/task", error), end;
    for (; !error && thread != end; thread.increment(error)) {
      std::ifstream file(thread->path() / "schedstat");
      uint64_t ran_ns = 0, waited_ns = 0;
      if (!(file >> ran_ns >> waited_ns)) continue;
      waits[thread->path().filename().string()] = 1e-9 * static_cast<double>(waited_ns);
    }
  } catch (const std::bad_alloc&) {
    waits.clear();
  }
  return waits;
}

// Returns the ID of the calling thread, or an empty string if the system does not report it.
std::string own_number() {
  try {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/thread-self", error).filename().string();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// The increase of the wait for a CPU, of one thread and the maximum of all other threads.
struct Starved {
  double own_s = 0;
  double others_s = 0;
};

Starved grown(const Waits& before, const Waits& after, const std::string& own) {
  Starved starved;
  for (const auto& [number, waited_s] : after) {
    const auto known = before.find(number);
    const double more_s = waited_s - (known == before.end() ? 0 : known->second);
    double& part_s = number == own ? starved.own_s : starved.others_s;
    part_s = std::max(part_s, more_s);
  }
  return starved;
}

// Blocks until one end is closed. Returns whether it was the other end rather than this one.
bool wait_for_hang_up(int descriptor) {
#ifdef POLLRDHUP
  // TCP does not report POLLHUP until both ends are closed, so also wait for POLLRDHUP.
  pollfd watched{descriptor, POLLRDHUP, 0};
#else
  pollfd watched{descriptor, 0, 0};
#endif
  while (poll(&watched, 1, -1) < 0) {
    if (errno != EINTR && errno != EAGAIN) return false;
  }
  return (watched.revents & POLLNVAL) == 0;
}

void watch(int descriptor, double grace_s, const std::atomic<int>& holds) {
  if (!wait_for_hang_up(descriptor)) return;
  double passed_s = 0, own_s = 0;
  double last_s = seconds(CLOCK_MONOTONIC), last_cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const std::string own = own_number();
  Waits last_waits = read_waits();
  while (passed_s < grace_s || own_s < grace_s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickS));
    const double now_s = seconds(CLOCK_MONOTONIC);
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    Waits waits = read_waits();
    const double used_s = cpu_s - last_cpu_s;
    double most_s = kMostTickS, lost_s = 0;
    if (!waits.empty()) {
      const Starved starved = grown(last_waits, waits, own);
      most_s += starved.own_s;
      lost_s = starved.others_s;
    } else if (used_s >= kLeastShare * kTickS) {
      lost_s = most_s;
    }
    const double tick_s = std::min(now_s - last_s, most_s);
    own_s += std::max(used_s, tick_s - std::min(lost_s, tick_s));
    passed_s += tick_s;
    if (holds > 0) passed_s = own_s = 0;
    last_s = now_s;
    last_cpu_s = cpu_s;
    last_waits = std::move(waits);
  }
  kill_self();
}

}  // namespace

Lifeline::Lifeline(int descriptor, double grace_s) {
  check(grace_s >= 0 && std::isfinite(grace_s), "grace_s", grace_s, "must be 0 or more; raise it");
  try {
    std::thread([descriptor, grace_s, holds = holds_] {
      watch(descriptor, grace_s, *holds);
    }).detach();
  } catch (const std::system_error& error) {
    throw Error("thread (of a child process) cannot be started, " + error.code().message() +
                "; raise the limit on threads");
  }
}

}  // namespace tengen::transport
