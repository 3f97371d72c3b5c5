#pragma once
// The rule of a single-threaded search, PUCT or Gumbel depending on the settings: root exploration,
// edge selection, policy target and move. search.h implements the search.

#include <vector>

#include "search/evaluation/root_noise.h"
#include "search/result.h"
#include "search/selection/forced_playouts.h"
#include "search/selection/gumbel.h"
#include "search/selection/lower_bound.h"
#include "search/selection/policy_target.h"
#include "search/selection/puct.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// The rule of a search, PUCT or Gumbel. Externally synchronised.
class SearchRule {
 public:
  SearchRule(const SearchSettings& settings, int num_actions)
      : settings_(settings),
        puct_(settings),
        gumbel_(settings),
        noise_(static_cast<size_t>(num_actions)) {}

  void begin(const SearchRequest& request) { puct_.begin(request.explore); }

  // Prepares an expanded root: samples the Gumbel variables or, for PUCT, applies temperature and
  // noise if the request explores. Overwrites `prior` [num_legal].
  void prepare_root(Tree& tree, const SearchRequest& request, float* prior) {
    if (settings_.policy == RootPolicy::kGumbel) {
      gumbel_.begin(tree, tree.node(tree.root()), request);
    } else if (request.explore) {
      explore_root(tree, settings_, request, prior, noise_.data());
    }
  }

  // Returns the edge that the simulation with index `simulation` takes; creates it if it is new.
  int select(Tree& tree, Arena::Offset offset, int simulation) {
    const Node& node = tree.node(offset);
    if (settings_.policy == RootPolicy::kPuct) {
      const int edge = puct_.select(tree, node, offset == tree.root());
      return edge == kNewEdge ? tree.add_edge(offset, node.next_index) : edge;
    }
    if (offset != tree.root()) {
      const int edge = gumbel_.select_below(tree, node);
      return edge == kNewEdge ? tree.add_edge(offset, node.next_index) : edge;
    }
    const int legal_index = gumbel_.select_root(tree, node, simulation);
    const Edges edges = tree.edges(node);
    for (int i = 0; i < node.num_edges; ++i) {
      if (edges.legal_index[i] == legal_index) return i;
    }
    return tree.add_edge(offset, legal_index);
  }

  // Computes the policy target and the best action of a result of read_root(); for Gumbel also the
  // root's value and score.
  void conclude(const Tree& tree, SearchResult& result) {
    const Node& root = tree.node(tree.root());
    weigh_actions(tree, root, result);
    normalise_policy(result);
    if (settings_.policy == RootPolicy::kGumbel && result.proof == Proof::kUnknown) {
      Gumbel::read_root_means(tree, root, result);
    }
    result.best_action = best_action(tree, root, result);
  }

 private:
  // Sets the policy target's weights: improved policy (Gumbel), or visits without forced ones
  // (PUCT).
  void weigh_actions(const Tree& tree, const Node& root, SearchResult& result) {
    if (settings_.policy == RootPolicy::kGumbel) {
      gumbel_.weigh_actions(tree, root, result);
    } else if (puct_.forces_playouts() && root.proof == Proof::kUnknown) {
      prune_forced_playouts(puct_.scale(root), result);
    }
  }

  int best_action(const Tree& tree, const Node& root, const SearchResult& result) {
    if (settings_.policy == RootPolicy::kPuct) return best_puct_action(tree, settings_, result);
    if (root.proof == Proof::kUnknown && root.num_edges > 0) {
      return tree.actions(root)[gumbel_.choose(tree, root)];
    }
    return most_likely_action(result);
  }

  SearchSettings settings_;
  Puct puct_;
  Gumbel gumbel_;
  std::vector<double> noise_;
};

}  // namespace tengen
