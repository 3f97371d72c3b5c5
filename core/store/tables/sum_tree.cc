#include "store/tables/sum_tree.h"

#include <algorithm>
#include <cstring>

namespace tengen::store::engine {
namespace {

constexpr uint32_t kWidth = 16;
constexpr size_t kBatch = 32;      // searches that descend together
constexpr size_t kFineLevels = 4;  // levels of weights, and of sums of 16, 256 and 4,096 weights

// ends[i] is the sum of children 0 to i. Adds in the same order on every machine, so that results
// are equal: two steps within each of four blocks of four, then from block to block.
template <typename T>
inline void prefix_sums(const T* children, T* ends) {
  typedef T Quad __attribute__((vector_size(4 * sizeof(T))));
  const Quad zero = {};
  Quad carry = zero;
  for (uint32_t i = 0; i < kWidth; i += 4) {
    Quad v;
    std::memcpy(&v, children + i, sizeof v);
    v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
    v += __builtin_shufflevector(zero, v, 0, 1, 4, 5);
    v += carry;
    carry = __builtin_shufflevector(v, v, 3, 3, 3, 3);
    std::memcpy(ends + i, &v, sizeof v);
  }
}

template <typename T>
inline T sum(const T* children) {
  T ends[kWidth];
  prefix_sums(children, ends);
  return ends[kWidth - 1];
}

// Returns the child that contains `position`, and makes `position` relative to that child.
template <typename T>
inline uint32_t step(const T* children, double* position) {
  T ends[kWidth];
  prefix_sums(children, ends);
  // Clamps the position, because rounding may move it past the last child with a weight.
  const T place = std::min(static_cast<T>(*position), ends[kWidth - 1]);
  uint32_t child = 0;
  for (uint32_t i = 0; i < kWidth; ++i) child += ends[i] <= place;
  if (child == kWidth) {
    child = 0;
    for (uint32_t i = 0; i < kWidth; ++i) child += ends[i] < place;
  }
  // Each prefix is rounded differently, so the prefix of a child with weight 0 may exceed its
  // predecessor's. The position then belongs to the last child with a weight before it.
  while (child > 0 && children[child] == T{0}) --child;
  const double begin = child == 0 ? 0.0 : ends[child - 1];
  *position = std::max(0.0, *position - begin);
  return child;
}

}  // namespace

template <typename Visit>
void SumTree::for_each_level_down(const Visit& visit) const {
  for (size_t level = coarse_.size() - 1; level-- > 0;) visit(coarse_[level]);
  for (size_t level = fine_.size(); level-- > 0;) visit(fine_[level]);
}

template <typename Visit>
void SumTree::for_each_level_up(const Visit& visit) {
  for (size_t level = 1; level < fine_.size(); ++level) visit(fine_[level - 1], fine_[level]);
  visit(fine_.back(), coarse_[0]);
  for (size_t level = 1; level < coarse_.size(); ++level) visit(coarse_[level - 1], coarse_[level]);
}

SumTree::SumTree(uint32_t capacity) : capacity_(0) { resize(capacity); }

void SumTree::resize(uint32_t capacity) {
  size_t nodes = (size_t{capacity} + kWidth - 1) / kWidth;
  std::vector<std::vector<float>> fine;
  std::vector<std::vector<double>> coarse;
  fine.emplace_back(nodes * kWidth);
  for (; nodes > 1; nodes = (nodes + kWidth - 1) / kWidth) {
    const size_t padded = (nodes + kWidth - 1) / kWidth * kWidth;
    if (fine.size() < kFineLevels) {
      fine.emplace_back(padded);
    } else {
      coarse.emplace_back(padded);
    }
  }
  coarse.emplace_back(1);
  // All memory is allocated before this line, so the rest cannot fail.
  if (!fine_.empty()) {
    std::copy_n(fine_[0].begin(), std::min(capacity, capacity_), fine[0].begin());
  }
  capacity_ = capacity;
  fine_ = std::move(fine);
  coarse_ = std::move(coarse);
  for_each_level_up([](const auto& level, auto& above) {
    for (size_t node = 0; node < level.size() / kWidth; ++node) {
      above[node] = sum(&level[node * kWidth]);
    }
  });
}

void SumTree::set(uint32_t index, float weight) {
  fine_[0][index] = weight;
  for_each_level_up([&](const auto& level, auto& above) {
    index /= kWidth;
    above[index] = sum(&level[size_t{index} * kWidth]);
  });
}

void SumTree::set(std::span<const uint32_t> indices, std::span<const float> weights) {
  touched_.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    fine_[0][indices[i]] = weights[i];
    touched_[i] = indices[i] / kWidth;
  }
  for_each_level_up([&](const auto& level, auto& above) {
    // Removes duplicate nodes, because neighbours in a batch often share parents.
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (uint32_t& node : touched_) {
      above[node] = sum(&level[size_t{node} * kWidth]);
      node /= kWidth;
    }
  });
}

uint32_t SumTree::find(double position) const {
  uint32_t index = 0;
  for_each_level_down([&](const auto& level) {
    index = index * kWidth + step(&level[size_t{index} * kWidth], &position);
  });
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
    for_each_level_down([&](const auto& level) {
      for (size_t i = 0; i < count; ++i) {
        __builtin_prefetch(level.data() + size_t{index[i]} * kWidth);
      }
      for (size_t i = 0; i < count; ++i) {
        index[i] = index[i] * kWidth + step(level.data() + size_t{index[i]} * kWidth, &rest[i]);
      }
    });
  }
}

}  // namespace tengen::store::engine
