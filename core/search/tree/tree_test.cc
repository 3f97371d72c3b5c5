#include "search/tree/tree.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "search/check_request.h"
#include "search/selection/lower_bound.h"
#include "search/tree/variation.h"

using namespace tengen;

namespace {

void check_arena() {
  Arena arena;
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (int round = 0; round < 2; ++round) {
    arena.clear();
    std::vector<std::pair<Arena::Offset, size_t>> blocks;
    for (int i = 0; i < 3000; ++i) {
      const size_t num_bytes = 1 + rng.below(200);
      const Arena::Offset offset = arena.allocate(num_bytes);
      TENGEN_CHECK(offset != Arena::kNull);
      TENGEN_CHECK(reinterpret_cast<uintptr_t>(arena.at<char>(offset)) % 8 == 0);
      std::memset(arena.at<char>(offset), i & 0xff, num_bytes);
      blocks.emplace_back(offset, num_bytes);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      const char* bytes = arena.at<char>(blocks[i].first);
      TENGEN_CHECK(std::all_of(bytes, bytes + blocks[i].second,
                               [&](char byte) { return byte == static_cast<char>(i & 0xff); }));
    }
    // A kernel may read a whole vector that starts at the last float.
    const Arena::Offset last = arena.allocate(sizeof(float));
    *arena.at<float>(last) = 1.0f;
    TENGEN_CHECK(simd::kernels().argmax(arena.at<float>(last), 1) == 0);
  }
}

// With the maximum number of visits of a search, mean, variance, standard error, lower bound and
// the parts of a score equal those of exact arithmetic. Values are multiples of 2^-24 with a small
// spread.
void check_many_visits() {
  Tree tree;
  tree.clear(true);
  const Arena::Offset parent = tree.add_node(0);
  const Arena::Offset offset = tree.add_node(1);
  Node& node = tree.node(offset);
  Rng rng(3, 0, 0, 0, Purpose::kTest);
  const int64_t middle = 11'744'051;  // 0.7 in units of 2^-24
  int64_t from_middle = 0;
  int64_t square_from_middle = 0;
  for (int i = 0; i < kMaxSimulations; ++i) {
    const int64_t away = static_cast<int64_t>(rng.below(1 << 15)) - (1 << 14);  // at most 0.001
    const auto value = static_cast<float>(middle + away) * 0x1p-24f;
    from_middle += away;
    square_from_middle += away * away;
    tree.add_visit(node, {value, value, 300.0f * value}, true);
  }
  const double count = kMaxSimulations;
  const double mean_away = static_cast<double>(from_middle) / count;
  const double mean = (static_cast<double>(middle) + mean_away) * 0x1p-24;
  const double variance =
      (static_cast<double>(square_from_middle) / count - mean_away * mean_away) * 0x1p-48;
  TENGEN_CHECK(std::abs(node.mean_value() - mean) < 1e-12);
  const double found = node.mean_square() - node.mean_value() * node.mean_value();
  TENGEN_CHECK(std::abs(found - variance) < 1e-3 * variance);
  const double error = std::sqrt(variance / count);
  TENGEN_CHECK(std::abs(standard_error(node) - error) < 1e-3 * error);
  const double bound = lower_bound(tree.node(parent), node, 5.0);
  TENGEN_CHECK(std::abs(bound - (-mean - 5.0 * error)) < 1e-2 * error);
  const NodeScore& score = tree.score_of(node);
  TENGEN_CHECK(std::abs(score.win_loss_sum / count - mean) < 1e-12);
  TENGEN_CHECK(std::abs(score.score_sum / count - 300.0 * mean) < 1e-5);  // each score was rounded
}

// Expands `node` with the actions `legal`, and adds edges with `visits` for the first of them.
Arena::Offset grow(Tree& tree, Arena::Offset node, const std::vector<uint16_t>& legal,
                   const std::vector<int>& visits) {
  const std::vector<float> prior(legal.size(), 0.1f);
  tree.expand(node, legal.data(), prior.data(), static_cast<int>(legal.size()));
  for (size_t i = 0; i < visits.size(); ++i) {
    const int edge = tree.add_edge(node, static_cast<int>(i));
    const Arena::Offset child = tree.add_node(0);
    tree.edges(tree.node(node)).child[edge] = child;
    tree.edges(tree.node(node)).visits[edge] = static_cast<float>(visits[i]);
  }
  return node;
}

Arena::Offset child_of(const Tree& tree, Arena::Offset node, int edge) {
  return tree.edges(tree.node(node)).child[edge];
}

// By hand: 7 is followed by 3, the first of two moves with 5 visits; 9 is followed by 2.
void check_worked_tree() {
  Tree tree;
  TENGEN_CHECK(principal_variation(tree, 7, 5).empty());
  tree.set_root(tree.add_node(0));
  TENGEN_CHECK(principal_variation(tree, 7, 5).empty());
  grow(tree, tree.root(), {7, 8, 9, 10}, {4, 0, 20});
  const Arena::Offset seven = grow(tree, child_of(tree, tree.root(), 0), {1, 3, 4}, {2, 5, 5});
  grow(tree, child_of(tree, seven, 1), {6}, {});
  const Arena::Offset nine = grow(tree, child_of(tree, tree.root(), 2), {2, 5}, {9, 1});
  grow(tree, child_of(tree, nine, 0), {5}, {0});
  const auto variation = [&](int action, size_t length) {
    return principal_variation(tree, action, length);
  };
  TENGEN_CHECK((variation(7, 5) == std::vector<int>{7, 3}));
  TENGEN_CHECK((variation(9, 5) == std::vector<int>{9, 2}));
  TENGEN_CHECK((variation(9, 1) == std::vector<int>{9}));
  TENGEN_CHECK(variation(8, 5).empty());   // an edge without a visit
  TENGEN_CHECK(variation(10, 5).empty());  // no edge
  TENGEN_CHECK(variation(11, 5).empty());  // not legal
}

}  // namespace

int main() {
  check_arena();
  check_many_visits();
  check_worked_tree();
  return 0;
}
