#pragma once
// Fault injection: named points at which a test can kill the process or simulate a full disk, to
// show that a durable operation loses no data at any step. A disarmed point costs one relaxed load.

#include <cstdint>
#include <string>

namespace tengen {

enum class FaultAction : uint32_t {
  kNone = 0,
  kKill = 1,      // kills this process with SIGKILL
  kDiskFull = 2,  // throws a DiskFullError
};

// Arms `point` instead of the previous point; kNone only disarms. The first `num_passes` passes
// have no effect, and every later one performs `action`.
void set_fault(const std::string& point, FaultAction action, uint32_t num_passes);

// Marks a fault point. `name` has the form "<object>.<completed step>".
void fault_point(const char* name);

}  // namespace tengen
