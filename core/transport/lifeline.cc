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
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/platform.h"

namespace tengen::transport {
namespace {

constexpr double kTickS = 0.05;
// If the whole process pauses, for example because it was stopped, the pause is one tick or two.
// A tick in which this thread had no processor is longer.
constexpr double kMostTickS = 2 * kTickS;
// Where the system does not say who waits for a processor: a process that uses less of a core
// does nothing but look at the clock.
constexpr double kLeastShare = 0.01;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds for which threads wanted a processor and had none, summed.
struct Starved {
  double own_s = 0;     // of the thread that calls
  double others_s = 0;  // of the other threads of this process
};

// Returns the seconds of /proc/TASK/schedstat; none where there is no such file.
std::optional<double> starved_s(const std::filesystem::path& task) {
  std::ifstream file(task / "schedstat");
  uint64_t ran_ns = 0, waited_ns = 0;
  if (!(file >> ran_ns >> waited_ns)) return std::nullopt;
  return 1e-9 * static_cast<double>(waited_ns);
}

// None where the system does not say.
std::optional<Starved> starved() {
  Starved total;
  try {
    const std::optional<double> own_s = starved_s("/proc/thread-self");
    if (!own_s) return std::nullopt;
    total = {*own_s, -*own_s};
    std::error_code error;
    std::filesystem::directory_iterator thread("/proc/self/task", error), end;
    for (; !error && thread != end; thread.increment(error)) {
      total.others_s += starved_s(thread->path()).value_or(0);
    }
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  return total;
}

// Returns whether the other end was closed, and not this one.
bool wait_for_hang_up(int descriptor) {
  pollfd watched{descriptor, 0, 0};
  while (poll(&watched, 1, -1) < 0) {
    if (errno != EINTR && errno != EAGAIN) return false;
  }
  return (watched.revents & POLLNVAL) == 0;
}

void watch(int descriptor, double grace_s, const std::atomic<int>& holds) {
  if (!wait_for_hang_up(descriptor)) return;
  double passed_s = 0, own_s = 0;
  double last_s = seconds(CLOCK_MONOTONIC), last_cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
  std::optional<Starved> last_starved = starved();
  while (passed_s < grace_s || own_s < grace_s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickS));
    const double now_s = seconds(CLOCK_MONOTONIC);
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const std::optional<Starved> now_starved = starved();
    const double used_s = cpu_s - last_cpu_s;
    double most_s = kMostTickS, lost_s = 0;
    if (last_starved && now_starved) {
      most_s += now_starved->own_s - last_starved->own_s;
      // A thread that has ended takes its part along.
      lost_s = std::max(0.0, now_starved->others_s - last_starved->others_s);
    } else if (used_s >= kLeastShare * kTickS) {
      lost_s = most_s;
    }
    const double tick_s = std::min(now_s - last_s, most_s);
    own_s += std::max(used_s, tick_s - std::min(lost_s, tick_s));
    passed_s += tick_s;
    if (holds > 0) passed_s = own_s = 0;
    last_s = now_s;
    last_cpu_s = cpu_s;
    last_starved = now_starved;
  }
  kill_self();
}

}  // namespace

Lifeline::Lifeline(int descriptor, double grace_s) {
  check(grace_s >= 0 && std::isfinite(grace_s), "grace_s", grace_s, "must be 0 or more");
  try {
    std::thread([descriptor, grace_s, holds = holds_] {
      watch(descriptor, grace_s, *holds);
    }).detach();
  } catch (const std::system_error& error) {
    throw Error("thread (of a process that works for another) cannot be made, " +
                error.code().message() + "; raise the limit on threads");
  }
}

}  // namespace tengen::transport
