#pragma once
// Weights of many items, and sampling in proportion to them. Each node has 16 children, so a sample
// from 100 million items touches seven nodes.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", appendix B.2.1. Differs: the tree is
// 16-ary, and each node is recomputed as the sum of its children instead of updated with a
// difference, so that rounding errors do not accumulate. Sums of more than 65,536 weights are
// double: with float sums, the last of 100 million equal items in a large node were never sampled.

#include <cstdint>
#include <span>
#include <vector>

namespace tengen::store::engine {

// Not thread-safe; no call blocks or scans.
class SumTree {
 public:
  // Creates indices [0, capacity), all with weight 0; capacity >= 1.
  explicit SumTree(uint32_t capacity);

  uint32_t capacity() const { return capacity_; }
  double total() const { return coarse_.back()[0]; }
  float weight(uint32_t index) const { return fine_[0][index]; }

  // Sets the weight of one index. `weight` is finite and >= 0; `index` < capacity.
  void set(uint32_t index, float weight);
  // Sets many weights, and computes the nodes above only once. indices[i] gets weights[i]; if an
  // index repeats, its last weight counts.
  void set(std::span<const uint32_t> indices, std::span<const float> weights);

  // Returns the index at `position` in [0, total) if all weights are laid end to end. The result
  // never has weight 0. Precondition: total > 0.
  uint32_t find(double position) const;
  // Finds many indices; their cache misses overlap.
  void find(std::span<const double> positions, std::span<uint32_t> indices) const;

  // Changes the capacity, and keeps the weights of all indices below both capacities. Changes
  // nothing if it throws bad_alloc.
  void resize(uint32_t capacity);

 private:
  // Calls visit(level) for each level below the total, from the top down.
  template <typename Visit>
  void for_each_level_down(const Visit& visit) const;
  // Calls visit(level, level above) for each level that has one above, from the weights up.
  template <typename Visit>
  void for_each_level_up(const Visit& visit);

  uint32_t capacity_;
  // fine_[0] are the weights. Each level has a 16th of the entries of the level below, padded to
  // complete nodes: first fine_, then coarse_. The last level of coarse_ holds the total.
  std::vector<std::vector<float>> fine_;
  std::vector<std::vector<double>> coarse_;
  std::vector<uint32_t> touched_;  // nodes changed by a batch; reused to save allocations
};

}  // namespace tengen::store::engine
