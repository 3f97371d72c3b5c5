#pragma once
// Helpers for native tests of inference lanes.

#include <cstring>
#include <vector>

#include "inference/packed_rows.h"
#include "inference/shared_port.h"

namespace tengen {

// Returns the planes [C, H, W] of a packed or dense row.
inline std::vector<float> read_row(const RowLayout& layout, const uint8_t* row) {
  std::vector<float> planes(layout.num_entries());
  read_row(layout, row, planes.data());
  return planes;
}

// The memory of inference lanes, owned by a test instead of a device driver.
class LaneMemory {
 public:
  LaneMemory(const RowLayout& layout, size_t num_actions, size_t capacity, size_t num_lanes,
             size_t num_devices = 1)
      : layout_(layout), num_actions_(num_actions), lanes_(num_lanes) {
    for (size_t i = 0; i < num_lanes; ++i) {
      Lane& lane = lanes_[i];
      lane.rows.resize(capacity * layout.num_bytes());
      lane.policy.resize(capacity * num_actions);
      lane.value.resize(capacity);
      lane.score.resize(2 * capacity);
      buffers_.push_back({lane.rows.data(), lane.policy.data(), lane.value.data(),
                          lane.score.data(), i % num_devices});
    }
  }

  const std::vector<LaneBuffers>& buffers() const { return buffers_; }
  std::vector<float> planes(size_t lane, size_t row) const {
    return read_row(layout_, lanes_[lane].rows.data() + row * layout_.num_bytes());
  }
  float* policy(size_t lane, size_t row) { return lanes_[lane].policy.data() + row * num_actions_; }
  float& value(size_t lane, size_t row) { return lanes_[lane].value[row]; }
  float* score(size_t lane, size_t row) { return lanes_[lane].score.data() + 2 * row; }

 private:
  struct Lane {
    std::vector<uint8_t> rows;
    std::vector<float> policy;
    std::vector<float> value;
    std::vector<float> score;
  };
  RowLayout layout_;
  size_t num_actions_;
  std::vector<Lane> lanes_;
  std::vector<LaneBuffers> buffers_;
};

}  // namespace tengen
