#pragma once
// PUCT: selects the edge of a descent. Source: Silver et al. 2017 (AlphaGo Zero), Methods,
// "Select"; the logarithmic constant is AlphaZero's (Silver et al. 2018, supplement), in KataGo's
// form. Differs from the paper: the factor is sqrt(N + 0.01), with N the visits of the children, so
// that the prior decides the first descent; an unvisited child has the parent's value minus a
// reduction (FPU). In a shared tree each descent in flight counts as a visit in the exploration
// term, as in Liu et al. 2020, "Watch the unobserved", and an edge without any other visit counts
// as lost (virtual loss, Chaslot et al. 2008); counting a loss on every edge made the search
// weaker. Optionally, as in KataGo, exploration grows with the spread of the node's values, and an
// exploring root forces visits (search/selection/forced_playouts.h).

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "search/selection/forced_playouts.h"
#include "search/settings.h"
#include "search/tree/tree.h"
#include "simd/kernels.h"

namespace tengen {

inline constexpr int kNewEdge = -1;

class Puct {
 public:
  explicit Puct(const SearchSettings& settings) : settings_(settings) {
    scale_.reserve(kTableSize);
    for (int n = 0; n < kTableSize; ++n) scale_.push_back(compute_scale(n));
  }

  // Call at the start of a search; `explore` says whether its root explores.
  void begin(bool explore) { forced_playouts_ = explore ? settings_.forced_playouts : 0.0f; }

  // Whether this search forces visits at the root.
  bool forces_playouts() const { return forced_playouts_ > 0.0f; }

  // Returns the factor of prior / (1 + visits): c(N) * sqrt(N), scaled with the values' spread.
  template <class AnyNode>
  float scale(const AnyNode& node) const {
    uint32_t child_visits = node.visits - 1;
    if constexpr (std::is_same_v<AnyNode, SharedNode>) child_visits += node.in_flight;
    const float scale = child_visits < kTableSize ? scale_[child_visits]
                                                  : compute_scale(static_cast<int>(child_visits));
    return settings_.cpuct_stdev_scale > 0.0f ? scale * stdev_factor(node) : scale;
  }

  // Returns the index of the edge to descend, or kNewEdge for the best unvisited child.
  // Precondition: the node is expanded. Ties go to the older edge.
  template <class Memory>
  int select(const BasicTree<Memory>& tree, const typename BasicTree<Memory>::Node& node,
             bool is_root) const {
    if (node.num_edges == 0) return kNewEdge;
    if constexpr (!BasicTree<Memory>::kShared) {  // searches in shared trees never explore
      if (is_root && forces_playouts()) {
        const int forced = forced_edge(tree, node, forced_playouts_);
        if (forced >= 0) return forced;
      }
    }
    const Edges edges = tree.edges(node);
    const float scale = this->scale(node);
    float best;
    int index;
    if constexpr (BasicTree<Memory>::kShared) {
      index = simd::kernels().best_edge_in_flight(edges.prior, edges.visits, edges.value_sum,
                                                  edges.in_flight, node.num_edges, scale,
                                                  settings_.least_value(), &best);
    } else {
      index = simd::kernels().best_edge(edges.prior, edges.visits, edges.value_sum, node.num_edges,
                                        scale, &best);
    }
    if (node.next_prior < 0.0f) return index;
    const float reduction = is_root ? settings_.root_fpu_reduction : settings_.fpu_reduction;
    const float fpu =
        static_cast<float>(node.mean_value()) - reduction * std::sqrt(node.visited_prior);
    return fpu + scale * node.next_prior > best ? kNewEdge : index;
  }

 private:
  static constexpr int kTableSize = 2048;
  // The standard deviation of a node's values that leaves c(N) unchanged, and the number of visits
  // that it counts as (KataGo's 0.4 and 2).
  static constexpr double kStdevPrior = 0.4;
  static constexpr double kStdevPriorVisits = 2.0;

  // Returns 1 + s * (stdev / kStdevPrior - 1), where s is cpuct_stdev_scale. Source: KataGo
  // (lightvector/KataGo), "dynamic variance-scaled cPUCT". Not inlined, so that searches without it
  // pay nothing. A node with a single visit has no spread, so its factor is 1.
  [[gnu::noinline]] float stdev_factor(const Node& node) const {
    if (node.visits <= 1) return 1.0f;
    const double square = node.mean_value() * node.mean_value();
    const double visits = node.visits;
    const double mean_square = std::max(square, node.mean_square());
    const double second_moment =
        ((square + kStdevPrior * kStdevPrior) * kStdevPriorVisits + mean_square * visits) /
        (kStdevPriorVisits + visits - 1.0);
    const double stdev = std::sqrt(std::max(0.0, second_moment - square));
    return static_cast<float>(1.0 + settings_.cpuct_stdev_scale * (stdev / kStdevPrior - 1.0));
  }

  float compute_scale(int child_visits) const {
    const double n = child_visits;
    const double c =
        settings_.cpuct + settings_.cpuct_log * std::log((n + settings_.cpuct_base) /
                                                         static_cast<double>(settings_.cpuct_base));
    return static_cast<float>(c * std::sqrt(n + 0.01));
  }

  SearchSettings settings_;
  float forced_playouts_ = 0.0f;
  std::vector<float> scale_;
};

}  // namespace tengen
