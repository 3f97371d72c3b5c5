#include "store/tables/sum_tree.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;
using store::engine::SumTree;

namespace {

// Returns the index at `position`, found by a walk over all weights.
uint32_t walk(const std::vector<float>& weights, double position) {
  double end = 0.0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0.0f) continue;
    end += weights[i];
    last = i;
    if (position < end) return i;
  }
  return last;
}

// Integer weights are summed without rounding, so that every position is exact.
void check_against_walk(uint32_t capacity) {
  Rng rng(1, capacity, 0, 0, Purpose::kTest);
  SumTree tree(capacity);
  std::vector<float> weights(capacity, 0.0f);
  for (int round = 0; round < 300; ++round) {
    if (round % 3 == 0) {
      const uint32_t index = rng.below(capacity);
      weights[index] = static_cast<float>(rng.below(4));
      tree.set(index, weights[index]);
    } else {
      std::vector<uint32_t> indices(1 + rng.below(40));
      std::vector<float> values(indices.size());
      for (size_t i = 0; i < indices.size(); ++i) {
        indices[i] = rng.below(capacity);
        values[i] = static_cast<float>(rng.below(4));
        weights[indices[i]] = values[i];
      }
      tree.set(indices, values);
    }
    double total = 0.0;
    for (const float weight : weights) total += weight;
    TENGEN_CHECK(tree.total() == total);
    if (total == 0.0) continue;
    std::vector<double> positions(50);
    for (double& position : positions) position = rng.uniform() * total;
    positions[0] = 0.0;
    positions[1] = std::floor(positions[1]);
    positions[2] = std::nextafter(total, 0.0);
    std::vector<uint32_t> found(positions.size());
    tree.find(positions, found);
    for (size_t i = 0; i < positions.size(); ++i) {
      TENGEN_CHECK(found[i] == tree.find(positions[i]));
      TENGEN_CHECK(weights[found[i]] > 0.0f);
      // A float cannot distinguish positions that differ in the eighth digit.
      if (std::abs(positions[i] - std::round(positions[i])) > 1e-6 * total) {
        TENGEN_CHECK(found[i] == walk(weights, positions[i]));
      }
    }
  }
}

void check_rounding() {
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  SumTree tree(5000);
  for (uint32_t i = 0; i < 5000; i += 2) {
    tree.set(i, static_cast<float>(std::pow(10.0, 12.0 * rng.uniform() - 6.0)));
  }
  for (int i = 0; i < 20000; ++i) {
    // Includes positions above the total, which a float sum in another order may exceed.
    const double position = tree.total() * (rng.uniform() * (1.0 + 1e-7));
    TENGEN_CHECK(tree.weight(tree.find(position)) > 0.0f);
  }
  TENGEN_CHECK(tree.weight(tree.find(tree.total())) > 0.0f);
}

// If sums are rounded and some weights are zero, no zero weight is found at the border between two
// items, or one ulp of a float or double from it.
void check_holes() {
  Rng rng(3, 0, 0, 0, Purpose::kTest);
  for (int round = 0; round < 20000; ++round) {
    SumTree tree(64);
    for (uint32_t i = 0; i < 16; ++i) {
      const bool is_hole = rng.below(4) == 0 || (round % 2 == 0 && i > 2);
      tree.set(i, is_hole ? 0.0f : static_cast<float>(std::pow(2.0, -30.0 * rng.uniform())));
    }
    if (tree.total() == 0.0) continue;
    double end = 0.0;
    for (uint32_t i = 0; i < 16; ++i) {
      end += tree.weight(i);
      const auto near = static_cast<float>(end);
      for (const double position :
           {end, std::nextafter(end, 0.0), double{near}, double{std::nextafterf(near, 0.0f)}}) {
        const double inside = std::min(position, std::nextafter(tree.total(), 0.0));
        TENGEN_CHECK(tree.weight(tree.find(inside)) > 0.0f);
      }
    }
  }
  SumTree tree(64);
  tree.set(0, 1.0f);
  tree.set(1, 0x1p-24f);
  tree.set(2, 0x1p-24f);
  TENGEN_CHECK(tree.find(std::nextafter(1.0, 0.0)) <= 2);
}

// Finds small weights at the borders of large nodes, after a sum in which a float would lose them.
void check_borders() {
  SumTree tree(1 << 20);
  const std::vector<uint32_t> indices = {0, 65536, 131071, 131072, (1 << 20) - 1};
  const std::vector<float> weights = {1e8f, 1.0f, 1.0f, 1.0f, 1.0f};
  tree.set(indices, weights);
  TENGEN_CHECK(tree.total() == 1e8 + 4.0);
  for (size_t i = 1; i < indices.size(); ++i) {
    const double begin = 1e8 + static_cast<double>(i) - 1.0;
    for (const double inside : {0.01, 0.5, 0.99}) {
      TENGEN_CHECK(tree.find(begin + inside) == indices[i]);
    }
  }
}

void check_resize() {
  SumTree tree(20);
  for (uint32_t i = 0; i < 20; ++i) tree.set(i, 1.0f);
  tree.resize(1000);
  TENGEN_CHECK(tree.total() == 20.0 && tree.capacity() == 1000 && tree.weight(999) == 0.0f);
  tree.set(999, 2.0f);
  TENGEN_CHECK(tree.find(21.5) == 999);
  tree.resize(10);
  TENGEN_CHECK(tree.total() == 10.0);
  tree.resize(20);  // removed weights do not return
  TENGEN_CHECK(tree.total() == 10.0);
  // Grows to one and two levels of double sums below the total, and shrinks again.
  for (const uint32_t capacity : {70000u, 3u << 20, 60000u, 100u}) {
    tree.resize(capacity);
    tree.set(capacity - 1, 3.0f);
    TENGEN_CHECK(tree.total() == 13.0);
    TENGEN_CHECK(tree.find(9.5) == 9 && tree.find(10.5) == capacity - 1);
    tree.set(capacity - 1, 0.0f);
  }
}

}  // namespace

int main() {
  for (const uint32_t capacity : {1u, 2u, 16u, 17u, 255u, 256u, 257u, 5000u, 70000u}) {
    check_against_walk(capacity);
  }
  check_rounding();
  check_holes();
  check_borders();
  check_resize();
  return 0;
}
