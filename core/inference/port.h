#pragma once
// Where search meets inference: many callers, one batch. The driver loops
//
//   while (n = port.next()) { backend.run(n rows); port.done(); }
//
// and the core never calls Python.

#include <cstddef>
#include <vector>

namespace tengen {

// The rows of one batch, owned by the port. planes [capacity, C, H, W], policy [capacity, A]
// logits, value [capacity] in [-1, 1] of the side to play; row-major float32.
struct BatchBuffers {
  int capacity = 0;
  int row_planes = 0;   // C * H * W
  int num_actions = 0;
  std::vector<float> planes;
  std::vector<float> policy;
  std::vector<float> value;

  BatchBuffers(int rows, int planes_size, int actions)
      : capacity(rows),
        row_planes(planes_size),
        num_actions(actions),
        planes(static_cast<size_t>(rows) * static_cast<size_t>(planes_size)),
        policy(static_cast<size_t>(rows) * static_cast<size_t>(actions)),
        value(static_cast<size_t>(rows)) {}

  float* planes_row(int row) {
    return planes.data() + static_cast<size_t>(row) * static_cast<size_t>(row_planes);
  }
  float* policy_row(int row) {
    return policy.data() + static_cast<size_t>(row) * static_cast<size_t>(num_actions);
  }
};

// One thread drives one port.
class Port {
 public:
  virtual ~Port() = default;
  // Fills buffers().planes and returns how many rows await evaluation; 0 when the work is over
  // or was stopped. Does the tree work; may run for milliseconds.
  virtual int next() = 0;
  // Takes the results of the rows that next() returned.
  virtual void done() = 0;
  virtual BatchBuffers& buffers() = 0;
};

}  // namespace tengen
