#include "records/fault.h"

#include <atomic>
#include <mutex>

#include "base/error.h"
#include "base/platform.h"

namespace tengen {
namespace {

struct Fault {
  std::mutex mutex;
  std::string point;
  FaultAction action = FaultAction::kNone;
  uint32_t num_passes_left = 0;
};

Fault& fault() {
  static Fault instance;
  return instance;
}

std::atomic<bool> armed{false};

}  // namespace

void set_fault(const std::string& point, FaultAction action, uint32_t num_passes) {
  const std::scoped_lock lock(fault().mutex);
  fault().point = point;
  fault().action = action;
  fault().num_passes_left = num_passes;
  armed.store(action != FaultAction::kNone, std::memory_order_relaxed);
}

void fault_point(const char* name) {
  if (!armed.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(fault().mutex);
  if (fault().point != name) return;
  if (fault().num_passes_left > 0) {
    --fault().num_passes_left;
    return;
  }
  if (fault().action == FaultAction::kKill) kill_self();
  if (fault().action == FaultAction::kDiskFull) {
    throw DiskFullError(
        "file (" + std::string(name) +
        ") could not be written: No space left on device; free some space and resume");
  }
}

}  // namespace tengen
