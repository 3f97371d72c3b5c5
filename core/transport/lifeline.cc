#include "transport/lifeline.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
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
// A process that uses less of a core does nothing but look at the clock.
constexpr double kLeastShare = 0.01;

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
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
  double passed_s = 0, used_s = 0, idle_s = 0;
  double last_s = seconds(CLOCK_MONOTONIC), last_cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
  while (passed_s < grace_s || (used_s < grace_s && idle_s < grace_s)) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTickS));
    const double now_s = seconds(CLOCK_MONOTONIC);
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double tick_s = std::min(now_s - last_s, kMostTickS);
    const bool is_idle = cpu_s - last_cpu_s < kLeastShare * tick_s;
    passed_s += tick_s;
    used_s += cpu_s - last_cpu_s;
    idle_s = is_idle ? idle_s + tick_s : 0;
    if (holds > 0) passed_s = used_s = idle_s = 0;
    last_s = now_s;
    last_cpu_s = cpu_s;
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
