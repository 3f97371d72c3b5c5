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
constexpr double kMostTickS = 2 * kTickS;
// Where the system does not say who waits for a processor: a process that uses less of a core
// does nothing but look at the clock.
constexpr double kLeastShare = 0.01;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds for which threads of this process wanted a processor and had none, summed; none where
// the system does not say.
std::optional<double> starved_s() {
  double total_s = 0;
  bool is_told = false;
  try {
    std::error_code error;
    std::filesystem::directory_iterator thread("/proc/self/task", error), end;
    for (; !error && thread != end; thread.increment(error)) {
      std::ifstream file(thread->path() / "schedstat");
      uint64_t ran_ns = 0, waited_ns = 0;
      if (!(file >> ran_ns >> waited_ns)) continue;
      total_s += 1e-9 * static_cast<double>(waited_ns);
      is_told = true;
    }
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
  return is_told ? std::optional(total_s) : std::nullopt;
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
  std::optional<double> last_starved_s = starved_s();
  while (passed_s < grace_s || own_s < grace_s) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickS));
    const double now_s = seconds(CLOCK_MONOTONIC);
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const std::optional<double> now_starved_s = starved_s();
    const double tick_s = std::min(now_s - last_s, kMostTickS), used_s = cpu_s - last_cpu_s;
    double lost_s = used_s < kLeastShare * tick_s ? 0 : tick_s;
    if (last_starved_s && now_starved_s) {
      // A thread that has ended takes its part along.
      lost_s = std::clamp(*now_starved_s - *last_starved_s, 0.0, tick_s);
    }
    passed_s += tick_s;
    own_s += std::max(used_s, tick_s - lost_s);
    if (holds > 0) passed_s = own_s = 0;
    last_s = now_s;
    last_cpu_s = cpu_s;
    last_starved_s = now_starved_s;
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
