#pragma once
// Fault injection: named points at which a test can kill the process or simulate a full disk, to
// check that a durable operation loses no data. A disarmed point costs one relaxed atomic load.

#include <cstdint>
#include <string>

namespace tengen {

enum class FaultAction : uint32_t {
  kNone = 0,
  kKill = 1,      // kills this process with SIGKILL
  kDiskFull = 2,  // throws a DiskFullError
};

// Disarms the previous point and arms `point`, unless `action` is kNone. The first `num_passes`
// passes through `point` have no effect; each later pass performs `action`.
void set_fault(const std::string& point, FaultAction action, uint32_t num_passes);

// Passes the fault point `name`, which has the form "<object>.<completed step>".
void fault_point(const char* name);

}  // namespace tengen
