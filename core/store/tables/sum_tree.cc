#include "store/tables/sum_tree.h"

#include <algorithm>
#include <cstring>

namespace tengen::store::engine {
namespace {

constexpr uint32_t kWidth = 16;
constexpr size_t kBatch = 32;  // draws that descend together

typedef float Quad __attribute__((vector_size(16)));

// Four blocks of four, in one order on every machine: within a block in two steps, then from
// block to block.
struct Prefixes {
  Quad block[4];
};

inline Prefixes prefix_sums(const float* children) {
  Prefixes out;
  const Quad zero = {};
  Quad carry = zero;
  for (int i = 0; i < 4; ++i) {
    Quad v;
    std::memcpy(&v, children + 4 * i, sizeof v);
    v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
    v += __builtin_shufflevector(zero, v, 0, 1, 4, 5);
    out.block[i] = v + carry;
    carry = __builtin_shufflevector(out.block[i], out.block[i], 3, 3, 3, 3);
  }
  return out;
}

inline float sum(const float* children) { return prefix_sums(children).block[3][3]; }

// Steps to the child that holds `position`, and makes it relative to that child. The prefix of a
// child of weight 0 is its predecessor's, so that such a child is never the first above.
inline uint32_t step(const float* children, double* position) {
  const Prefixes prefixes = prefix_sums(children);
  float ends[kWidth];
  std::memcpy(ends, &prefixes, sizeof ends);
  // Rounding may leave a position at the very end, where the last child of any weight is meant.
  const float place = std::min(static_cast<float>(*position), ends[kWidth - 1]);
  uint32_t child = 0;
  for (uint32_t i = 0; i < kWidth; ++i) child += ends[i] <= place;
  if (child == kWidth) {
    child = 0;
    for (uint32_t i = 0; i < kWidth; ++i) child += ends[i] < place;
  }
  const double begin = child == 0 ? 0.0 : ends[child - 1];
  *position = std::max(0.0, *position - begin);
  return child;
}

}  // namespace

SumTree::SumTree(uint32_t capacity) : capacity_(0) { resize(capacity); }

void SumTree::resize(uint32_t capacity) {
  std::vector<float> weights;
  if (!levels_.empty()) weights = std::move(levels_[0]);
  weights.resize(std::min(capacity, capacity_));
  capacity_ = capacity;
  levels_.clear();
  uint32_t nodes = (capacity + kWidth - 1) / kWidth;
  weights.resize(size_t{nodes} * kWidth);
  levels_.push_back(std::move(weights));
  for (;;) {
    const std::vector<float>& below = levels_.back();
    const uint32_t parents = (nodes + kWidth - 1) / kWidth;
    std::vector<float> level(nodes == 1 ? 1 : size_t{parents} * kWidth);
    for (uint32_t i = 0; i < nodes; ++i) level[i] = sum(&below[size_t{i} * kWidth]);
    levels_.push_back(std::move(level));
    if (nodes == 1) break;
    nodes = parents;
  }
}

void SumTree::update_parent(size_t level, uint32_t node) {
  levels_[level + 1][node] = sum(&levels_[level][size_t{node} * kWidth]);
}

void SumTree::set(uint32_t index, float weight) {
  levels_[0][index] = weight;
  for (size_t level = 0; level + 1 < levels_.size(); ++level) {
    index /= kWidth;
    update_parent(level, index);
  }
}

void SumTree::set(std::span<const uint32_t> indices, std::span<const float> weights) {
  touched_.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    levels_[0][indices[i]] = weights[i];
    touched_[i] = indices[i] / kWidth;
  }
  for (size_t level = 0; level + 1 < levels_.size(); ++level) {
    // Neighbours in a batch often share parents; above, nearly all do.
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (uint32_t& node : touched_) {
      update_parent(level, node);
      node /= kWidth;
    }
  }
}

uint32_t SumTree::find(double position) const {
  uint32_t index = 0;
  for (size_t level = levels_.size() - 1; level-- > 0;) {
    index = index * kWidth + step(&levels_[level][size_t{index} * kWidth], &position);
  }
  return index;
}

void SumTree::find(std::span<const double> positions, std::span<uint32_t> indices) const {
  for (size_t begin = 0; begin < positions.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, positions.size() - begin);
    double rest[kBatch];
    uint32_t* index = &indices[begin];
    for (size_t i = 0; i < count; ++i) {
      rest[i] = positions[begin + i];
      index[i] = 0;
    }
    for (size_t level = levels_.size() - 1; level-- > 0;) {
      const float* weights = levels_[level].data();
      for (size_t i = 0; i < count; ++i) {
        index[i] = index[i] * kWidth + step(weights + size_t{index[i]} * kWidth, &rest[i]);
        if (level > 0) {
          __builtin_prefetch(levels_[level - 1].data() + size_t{index[i]} * kWidth);
        }
      }
    }
  }
}

}  // namespace tengen::store::engine
