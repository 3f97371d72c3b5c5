#pragma once
// Named points at which a test can kill the process or simulate a full disk, to show that no step
// of a durable operation loses data. A disarmed point costs one relaxed load.

#include <cstdint>
#include <string>

namespace tengen {

enum class FaultAction : uint32_t {
  kNone = 0,
  kKill = 1,      // kills this process with SIGKILL
  kDiskFull = 2,  // throws the Error of a full disk
};

// Arms `point`; only one point per process is armed at a time. The action happens from the
// (num_passes + 1)th pass on, until the fault is changed. kNone disarms.
void set_fault(const std::string& point, FaultAction action, uint32_t num_passes);

// Marks a point. Points are named "<thing>.<step just done>".
void fault_point(const char* name);

}  // namespace tengen
