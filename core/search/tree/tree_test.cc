#include "search/tree/tree.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "search/check_request.h"
#include "search/selection/lower_bound.h"

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

// A node with `num_legal` actions 10, 12, ... and random priors with ties.
Arena::Offset add_expanded(Tree& tree, int num_legal, Rng& rng) {
  const Arena::Offset offset = tree.add_node(static_cast<int>(rng.below(2)));
  std::vector<uint16_t> actions;
  std::vector<float> priors;
  for (int i = 0; i < num_legal; ++i) {
    actions.push_back(static_cast<uint16_t>(10 + 2 * i));
    priors.push_back(static_cast<float>(rng.below(50)) / 64.0f);
  }
  tree.expand(offset, actions.data(), priors.data(), num_legal);
  return offset;
}

// Edges are created in order of prior; existing ones survive growth of block and arena.
void check_edges(int num_legal, Rng& rng) {
  Tree tree;
  const Arena::Offset root = add_expanded(tree, num_legal, rng);
  std::vector<float> priors(tree.priors(tree.node(root)), tree.priors(tree.node(root)) + num_legal);
  std::vector<int> order;
  for (int i = 0; i < num_legal; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return priors[static_cast<size_t>(a)] > priors[static_cast<size_t>(b)];
  });
  float mass = 0.0f;
  for (int i = 0; i < num_legal; ++i) {
    const int legal_index = order[static_cast<size_t>(i)];
    const float prior = priors[static_cast<size_t>(legal_index)];
    TENGEN_CHECK(tree.node(root).next_index == legal_index);
    TENGEN_CHECK(tree.node(root).next_prior == prior);
    TENGEN_CHECK(tree.add_edge(root, legal_index) == i);
    mass += prior;
    const Edges edges = tree.edges(tree.node(root));
    edges.visits[i] = static_cast<float>(i);
    edges.value_sum[i] = -static_cast<float>(i);
    const Arena::Offset child = tree.add_node(1);
    tree.edges(tree.node(root)).child[i] = child;
    tree.node(child).visits = static_cast<uint32_t>(i);
  }
  const Node& node = tree.node(root);
  TENGEN_CHECK(node.next_prior < 0.0f && node.num_edges == num_legal);
  TENGEN_CHECK(node.visited_prior == mass && node.capacity == num_legal);
  const Edges edges = tree.edges(node);
  for (int i = 0; i < num_legal; ++i) {
    const int legal_index = order[static_cast<size_t>(i)];
    TENGEN_CHECK(edges.legal_index[i] == legal_index);
    TENGEN_CHECK(tree.actions(node)[legal_index] == 10 + 2 * legal_index);
    TENGEN_CHECK(edges.prior[i] == priors[static_cast<size_t>(legal_index)]);
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(i));
    TENGEN_CHECK(edges.value_sum[i] == -static_cast<float>(i));
    TENGEN_CHECK(tree.node(edges.child[i]).visits == static_cast<uint32_t>(i));
  }
}

void check_set_priors(Rng& rng) {
  Tree tree;
  const Arena::Offset root = add_expanded(tree, 9, rng);
  for (const int legal_index : {4, 2}) {
    tree.edges(tree.node(root)).child[tree.add_edge(root, legal_index)] = tree.add_node(0);
  }
  const std::vector<float> priors = {0.1f, 0.05f, 0.3f, 0.05f, 0.1f, 0.05f, 0.05f, 0.25f, 0.05f};
  tree.set_priors(root, priors.data());
  const Node& node = tree.node(root);
  TENGEN_CHECK(tree.edges(node).prior[0] == 0.1f && tree.edges(node).prior[1] == 0.3f);
  TENGEN_CHECK(node.visited_prior == 0.1f + 0.3f);
  TENGEN_CHECK(node.next_index == 7 && node.next_prior == 0.25f);
}

void grow_random(Tree& tree, Arena::Offset offset, int depth, Rng& rng) {
  tree.node(offset).visits = rng.next32();
  if (depth == 0) return;
  const int num_edges = static_cast<int>(rng.below(6));
  for (int i = 0; i < num_edges; ++i) {
    const int edge = tree.add_edge(offset, tree.node(offset).next_index);
    const Arena::Offset child = add_expanded(tree, 6, rng);
    tree.edges(tree.node(offset)).child[edge] = child;
    grow_random(tree, child, depth - 1, rng);
  }
}

void check_same(const Tree& a, Arena::Offset node_a, const Tree& b, Arena::Offset node_b) {
  const Node& x = a.node(node_a);
  const Node& y = b.node(node_b);
  TENGEN_CHECK(x.visits == y.visits && x.to_play == y.to_play && x.num_edges == y.num_edges);
  TENGEN_CHECK(x.num_legal == y.num_legal && x.next_index == y.next_index);
  TENGEN_CHECK(x.next_prior == y.next_prior && x.visited_prior == y.visited_prior);
  TENGEN_CHECK(std::equal(a.priors(x), a.priors(x) + x.num_legal, b.priors(y)));
  TENGEN_CHECK(std::equal(a.actions(x), a.actions(x) + x.num_legal, b.actions(y)));
  for (int i = 0; i < x.num_edges; ++i) {
    TENGEN_CHECK(a.edges(x).prior[i] == b.edges(y).prior[i]);
    TENGEN_CHECK(a.edges(x).legal_index[i] == b.edges(y).legal_index[i]);
    check_same(a, a.edges(x).child[i], b, b.edges(y).child[i]);
  }
}

// An adopted subtree equals its source, contains nothing else, and can grow.
void check_adopt(Rng& rng) {
  Tree tree;
  tree.set_root(add_expanded(tree, 6, rng));
  grow_random(tree, tree.root(), 5, rng);
  Tree adopted;
  adopted.adopt(tree, tree.root());
  check_same(tree, tree.root(), adopted, adopted.root());
  TENGEN_CHECK(adopted.used_bytes() <= tree.used_bytes());
  const Node& root = tree.node(tree.root());
  for (int i = 0; i < root.num_edges; ++i) {
    const Arena::Offset child = tree.edges(root).child[i];
    adopted.adopt(tree, child);
    check_same(tree, child, adopted, adopted.root());
    while (adopted.node(adopted.root()).next_prior >= 0.0f) {
      const int edge = adopted.add_edge(adopted.root(), adopted.node(adopted.root()).next_index);
      const Arena::Offset added = add_expanded(adopted, 6, rng);
      adopted.edges(adopted.node(adopted.root())).child[edge] = added;
    }
    TENGEN_CHECK(adopted.node(adopted.root()).num_edges == 6);
  }
  adopted.clear();
  TENGEN_CHECK(adopted.root() == Arena::kNull);
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
  const int64_t middle = 11'744'051;  // 0.7
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
  TENGEN_CHECK(std::abs(score.score_sum / count - 300.0 * mean) < 1e-5);  // each was rounded
}

}  // namespace

int main() {
  check_arena();
  check_many_visits();
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  for (const int num_legal : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 225, 362}) {
    check_edges(num_legal, rng);
  }
  check_set_priors(rng);
  for (int i = 0; i < 20; ++i) check_adopt(rng);
  return 0;
}
