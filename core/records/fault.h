#pragma once
// Named points at which a test may kill the process or make the disk seem full, so that every
// step of every durable hand-over can be shown to lose nothing. Unarmed, a point costs one
// relaxed load.

#include <cstdint>
#include <string>

namespace tengen {

enum class FaultAction : uint32_t {
  kNone = 0,
  kKill = 1,      // SIGKILL to this process
  kDiskFull = 2,  // throws the Error of a full disk
};

// Arms `point`, one at a time a process: passing it for the (num_passes + 1)th time acts, and
// every time after that until the fault is changed. kNone disarms.
void set_fault(const std::string& point, FaultAction action, uint32_t num_passes);

// Marks a point. Points are named "<thing>.<step just done>".
void fault_point(const char* name);

}  // namespace tengen
