#pragma once
// Weights of many items, and draws in proportion to them: 16 children a node, so that a draw among
// 100 million touches seven nodes.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", appendix B.2.1. Differs: 16-ary,
// and a node is the sum of its children computed anew, never a running difference, so that
// nothing drifts however long it lives. Sums of more than 65,536 weights are double: by float sums
// the last items of a large node were never drawn among 100 million equal ones.

#include <cstdint>
#include <span>
#include <vector>

namespace tengen::store::engine {

// Not thread-safe; no call blocks or scans.
class SumTree {
 public:
  // Room for indices [0, capacity), all of weight 0; capacity >= 1.
  explicit SumTree(uint32_t capacity);

  uint32_t capacity() const { return capacity_; }
  double total() const { return coarse_.back()[0]; }
  float weight(uint32_t index) const { return fine_[0][index]; }

  // weight finite and >= 0; index < capacity.
  void set(uint32_t index, float weight);
  // The same for many; nodes above are computed once. indices[i] gets weights[i], the last one
  // where an index repeats.
  void set(std::span<const uint32_t> indices, std::span<const float> weights);

  // The index at `position` in [0, total) of all weights laid end to end: never one of weight 0.
  // total > 0.
  uint32_t find(double position) const;
  // The same for many; their cache misses overlap.
  void find(std::span<const double> positions, std::span<uint32_t> indices) const;

  // Keeps the weights of indices below both capacities. Changes nothing where it throws bad_alloc.
  void resize(uint32_t capacity);

 private:
  // Calls visit(level) for each level below the total, from the top.
  template <typename Visit>
  void for_each_level_down(const Visit& visit) const;
  // Calls visit(level, level above) for each level with one above, from the weights.
  template <typename Visit>
  void for_each_level_up(const Visit& visit);

  uint32_t capacity_;
  // fine_[0] are the weights. Each level is a 16th of the one below, padded to whole nodes: first
  // those of fine_, then those of coarse_. The last level of coarse_ holds the total.
  std::vector<std::vector<float>> fine_;
  std::vector<std::vector<double>> coarse_;
  std::vector<uint32_t> touched_;  // of a batch, kept for its memory
};

}  // namespace tengen::store::engine
