#pragma once
// The interface between search and inference. A port is served by a driver, which runs
//
//     while (n = port.next()) { backend.run(n rows); port.done(); }
//
// so that the core never calls Python.

#include <array>
#include <cstddef>
#include <vector>

namespace tengen {

// The row-major float32 arrays of one batch, owned by the port: planes [capacity, C, H, W], policy
// logits [capacity, A], value [capacity] in [-1, 1] for the side to move, and score [capacity, 2]
// with mean and standard deviation in points, empty if the port needs no scores.
struct BatchBuffers {
  size_t capacity;
  std::array<size_t, 3> planes_shape;  // C, H, W
  size_t num_actions;
  std::vector<float> planes;
  std::vector<float> policy;
  std::vector<float> value;
  std::vector<float> score;

  BatchBuffers(size_t num_rows, std::array<size_t, 3> shape, size_t actions,
               bool wants_score = false)
      : capacity(num_rows),
        planes_shape(shape),
        num_actions(actions),
        planes(num_rows * shape[0] * shape[1] * shape[2]),
        policy(num_rows * actions),
        value(num_rows),
        score(wants_score ? 2 * num_rows : 0) {}

  float* planes_row(int row) {
    const size_t size = planes_shape[0] * planes_shape[1] * planes_shape[2];
    return planes.data() + static_cast<size_t>(row) * size;
  }
  float* policy_row(int row) { return policy.data() + static_cast<size_t>(row) * num_actions; }
  // Returns the score of a row, or null if the port needs no scores.
  float* score_row(int row) {
    return score.empty() ? nullptr : score.data() + 2 * static_cast<size_t>(row);
  }
};

// A source of rows to evaluate, driven by one thread.
class Port {
 public:
  virtual ~Port() = default;
  // Fills buffers().planes and returns the number of rows to evaluate, or 0 if the search is
  // finished or stopped. Runs the tree searches, so a call may take milliseconds.
  virtual int next() = 0;
  // Reads the network's outputs for the rows of the last next() from buffers().
  virtual void done() = 0;
  virtual BatchBuffers& buffers() = 0;
};

}  // namespace tengen
