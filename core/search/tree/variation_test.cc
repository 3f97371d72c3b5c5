#include "search/tree/variation.h"

#include "base/testing.h"

using namespace tengen;

namespace {

// Adds a node below an edge: `legal` actions, the first `visits.size()` of them visited.
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

// Worked by hand: 7 -> 3 (5 visits, first of two with as many) -> nothing; 9 -> 2 -> nothing.
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
  check_worked_tree();
  return 0;
}
