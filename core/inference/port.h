#pragma once
// Where search meets inference: many callers, one batch. The driver loops
//
//   while (n = port.next()) { backend.run(n rows); port.done(); }
//
// and the core never calls Python.

#include <array>
#include <cstddef>
#include <vector>

namespace tengen {

// The rows of one batch, owned by the port. planes [capacity, C, H, W], policy [capacity, A]
// logits, value [capacity] in [-1, 1] of the side to play; row-major float32.
struct BatchBuffers {
  size_t capacity;
  std::array<size_t, 3> planes_shape;  // C, H, W
  size_t num_actions;
  std::vector<float> planes;
  std::vector<float> policy;
  std::vector<float> value;

  BatchBuffers(size_t num_rows, std::array<size_t, 3> shape, size_t actions)
      : capacity(num_rows),
        planes_shape(shape),
        num_actions(actions),
        planes(num_rows * shape[0] * shape[1] * shape[2]),
        policy(num_rows * actions),
        value(num_rows) {}

  float* planes_row(int row) {
    const size_t size = planes_shape[0] * planes_shape[1] * planes_shape[2];
    return planes.data() + static_cast<size_t>(row) * size;
  }
  float* policy_row(int row) { return policy.data() + static_cast<size_t>(row) * num_actions; }
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
