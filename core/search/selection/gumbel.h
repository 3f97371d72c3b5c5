#pragma once
// Gumbel search: sequential halving at the root and the improved policy below it. Source: Danihelka
// et al. 2022, "Policy improvement by planning with Gumbel", sections 3 to 5 and appendix D (mixed
// value). Differs from the paper: an action that is proven lost survives only if all are, and a
// proven win ends the search. q is the value in the tree. If the score counts, q slightly exceeds
// [-1, 1] and is not rescaled, so that the game's result keeps its weight.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "search/result.h"
#include "search/selection/puct.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// Returns the schedule of sequential halving over `num_considered` actions: for each of
// `num_simulations` simulations, the number of previous visits of the actions that it may choose.
inline std::vector<uint32_t> considered_visits(int num_considered, int num_simulations) {
  std::vector<uint32_t> sequence;
  sequence.reserve(static_cast<size_t>(num_simulations));
  if (num_considered <= 1) {
    for (int i = 0; i < num_simulations; ++i) sequence.push_back(static_cast<uint32_t>(i));
    return sequence;
  }
  const int rounds = std::bit_width(static_cast<unsigned>(num_considered - 1));  // ceil(log2 m)
  std::vector<uint32_t> visits(static_cast<size_t>(num_considered), 0);
  int considered = num_considered;
  while (static_cast<int>(sequence.size()) < num_simulations) {
    const int extra = std::max(1, num_simulations / (rounds * considered));
    for (int e = 0; e < extra; ++e) {
      for (int i = 0; i < considered; ++i) sequence.push_back(visits[static_cast<size_t>(i)]++);
    }
    considered = std::max(2, considered / 2);
  }
  sequence.resize(static_cast<size_t>(num_simulations));
  return sequence;
}

class Gumbel {
 public:
  explicit Gumbel(const SearchSettings& settings)
      : settings_(settings), least_value_(settings.least_value()) {}

  // Samples the root's Gumbel variables (zeros without exploration) and prepares the schedule.
  // Precondition: the root is expanded and has no edges.
  void begin(const Tree& tree, const Node& root, const SearchRequest& request) {
    const int n = root.num_legal;
    const float* prior = tree.priors(root);
    base_.resize(static_cast<size_t>(n));
    Rng rng(request.seed, request.generation, request.game, request.ply, Purpose::kGumbel);
    for (int i = 0; i < n; ++i) {
      const double noise = request.explore ? rng.gumbel() : 0.0;
      base_[static_cast<size_t>(i)] = static_cast<float>(noise + log_prior(prior[i]));
    }
    const int considered =
        std::min({settings_.gumbel_considered, n, std::max(request.num_simulations, 1)});
    if (considered != schedule_considered_ || request.num_simulations != schedule_simulations_) {
      schedule_ = considered_visits(considered, request.num_simulations);
      schedule_considered_ = considered;
      schedule_simulations_ = request.num_simulations;
    }
  }

  // Returns the legal index of the root action that the simulation with index `simulation` takes.
  int select_root(const Tree& tree, const Node& root, int simulation) {
    return best_at_root(tree, root, schedule_[static_cast<size_t>(simulation)]);
  }

  // Returns the legal index of the action to play, the best of the most visited actions.
  int choose(const Tree& tree, const Node& root) {
    float most = 0.0f;
    const Edges edges = tree.edges(root);
    for (int i = 0; i < root.num_edges; ++i) {
      if (std::isfinite(edges.value_sum[i])) most = std::max(most, edges.visits[i]);
    }
    return best_at_root(tree, root, static_cast<uint32_t>(most));
  }

  // Returns the edge to descend, or kNewEdge: the argmax of improved policy - N(a) / (1 + sum N).
  int select_below(const Tree& tree, const Node& node) {
    if (node.num_edges == 0) return kNewEdge;
    const Edges edges = tree.edges(node);
    const float sum_visits = static_cast<float>(node.visits - 1);
    const float new_weight = improve(tree, node);
    int best = kNewEdge;
    float best_score = -2.0f;
    for (int i = 0; i < node.num_edges; ++i) {
      if (!std::isfinite(edges.value_sum[i])) continue;
      const float score = weights_[static_cast<size_t>(i)] - edges.visits[i] / (1.0f + sum_visits);
      if (score > best_score) {
        best_score = score;
        best = i;
      }
    }
    if (node.next_prior >= 0.0f && node.next_prior * new_weight > best_score) return kNewEdge;
    return best;
  }

  // Returns the completed Q of unvisited actions, mixed from the evaluator's value `own` and the
  // values q(i) of the edges (appendix D).
  template <class Q>
  static float mixed_value(const Node& node, const Edges& edges, float own, Q&& q) {
    float prior_mass = 0.0f;
    float weighted = 0.0f;
    float sum_visits = 0.0f;
    for (int i = 0; i < node.num_edges; ++i) {
      prior_mass += edges.prior[i];
      weighted += edges.prior[i] * q(i);
      sum_visits += edges.visits[i];
    }
    if (prior_mass <= 0.0f) return own;
    return (own + sum_visits * weighted / prior_mass) / (1.0f + sum_visits);
  }

  // Sets weights_[i] to the improved policy of edge i; returns the factor for the other priors.
  float improve(const Tree& tree, const Node& node) {
    const Edges edges = tree.edges(node);
    float most = 0.0f;
    for (int i = 0; i < node.num_edges; ++i) most = std::max(most, edges.visits[i]);
    const float scale = (settings_.gumbel_visit + most) * settings_.gumbel_scale;
    const float mixed =
        mixed_value(node, edges, node.value_to_play, [&](int i) { return edge_value(edges, i); });
    weights_.resize(static_cast<size_t>(node.num_edges) + 1 + simd::kOverread);
    const float rest = std::max(0.0f, 1.0f - node.visited_prior);
    const bool has_rest = node.next_prior >= 0.0f;
    float top = has_rest ? scale * mixed : -std::numeric_limits<float>::infinity();
    for (int i = 0; i < node.num_edges; ++i) top = std::max(top, scale * edge_value(edges, i));
    for (int i = 0; i < node.num_edges; ++i) {
      weights_[static_cast<size_t>(i)] = scale * edge_value(edges, i) - top;
    }
    weights_[static_cast<size_t>(node.num_edges)] = has_rest ? scale * mixed - top : -87.0f;
    simd::kernels().exp(weights_.data(), node.num_edges + 1, weights_.data());
    float total = has_rest ? rest * weights_[static_cast<size_t>(node.num_edges)] : 0.0f;
    for (int i = 0; i < node.num_edges; ++i) {
      weights_[static_cast<size_t>(i)] *= edges.prior[i];
      total += weights_[static_cast<size_t>(i)];
    }
    // If all mass is on priors that underflowed, the improved policy is the priors.
    if (!(total > 0.0f)) {
      for (int i = 0; i < node.num_edges; ++i) weights_[static_cast<size_t>(i)] = edges.prior[i];
      return 1.0f;
    }
    for (int i = 0; i < node.num_edges; ++i) weights_[static_cast<size_t>(i)] /= total;
    return has_rest ? weights_[static_cast<size_t>(node.num_edges)] / total : 0.0f;
  }

  // Sets the policy target to the improved policy at the root, before normalisation.
  void weigh_actions(const Tree& tree, const Node& root, SearchResult& result) {
    const Edges edges = tree.edges(root);
    const float factor = improve(tree, root);
    for (ActionResult& a : result.actions) a.policy = a.visits == 0 ? a.prior * factor : 0.0f;
    for (int i = 0; i < root.num_edges; ++i) {
      result.actions[edges.legal_index[i]].policy = weights_[static_cast<size_t>(i)];
    }
  }

  // Sets the value and score of an unsettled root to their expectations under the policy target.
  // These predict the outcome better than the means over visits, because halving also visits worse
  // actions. Precondition: the policy target is computed.
  static void read_root_means(const Tree& tree, const Node& root, SearchResult& result) {
    result.root_value_to_play =
        target_mean(tree, root, result, &ActionResult::value_to_play, result.network_value_to_play);
    if (!result.has_scores) return;
    result.root_score_to_play = target_mean(tree, root, result, &ActionResult::score_to_play,
                                            tree.score_of(root).score_to_play);
  }

 private:
  static double log_prior(float prior) { return std::log(std::max<double>(prior, 1e-30)); }
  float edge_value(const Edges& edges, int i) const {
    return std::isfinite(edges.value_sum[i]) ? edges.value_sum[i] / edges.visits[i] : least_value_;
  }

  // Returns the mean of the field `what` under the policy target. For unvisited actions the field
  // is completed like Q, with `own` as the evaluator's value of the root.
  static float target_mean(const Tree& tree, const Node& root, const SearchResult& result,
                           float ActionResult::* what, float own) {
    const Edges edges = tree.edges(root);
    const float mixed = mixed_value(
        root, edges, own, [&](int i) { return result.actions[edges.legal_index[i]].*what; });
    float mean = 0.0f;
    for (const ActionResult& a : result.actions)
      mean += a.policy * (a.visits > 0 ? a.*what : mixed);
    return mean;
  }

  // Returns the argmax of g + logit + sigma(completed Q) over the actions with `visits` visits.
  int best_at_root(const Tree& tree, const Node& root, uint32_t visits) {
    const Edges edges = tree.edges(root);
    float most = 0.0f;
    for (int i = 0; i < root.num_edges; ++i) most = std::max(most, edges.visits[i]);
    const float scale = (settings_.gumbel_visit + most) * settings_.gumbel_scale;
    int best = -1;
    float best_score = 0.0f;
    const auto offer = [&](int legal_index, float q) {
      const float score = base_[static_cast<size_t>(legal_index)] + scale * q;
      if (best < 0 || score > best_score || (score == best_score && legal_index < best)) {
        best = legal_index;
        best_score = score;
      }
    };
    for (int i = 0; i < root.num_edges; ++i) {
      if (edges.visits[i] == static_cast<float>(visits) && std::isfinite(edges.value_sum[i])) {
        offer(edges.legal_index[i], edge_value(edges, i));
      }
    }
    if (visits == 0) {
      const float* prior = tree.priors(root);
      for (int i = 0; i < root.num_legal; ++i) {
        if (prior[i] >= 0.0f)
          offer(i, 0.0f);  // all have the same completed Q, which does not affect the argmax
      }
    }
    if (best >= 0) return best;
    // Either every action with that count is proven lost, or the schedule has passed the remaining
    // actions. Takes the best other action, so that no simulation is wasted on a settled one.
    for (int i = 0; i < root.num_edges; ++i) {
      if (std::isfinite(edges.value_sum[i])) offer(edges.legal_index[i], edge_value(edges, i));
    }
    if (best >= 0) return best;
    const float* prior = tree.priors(root);
    for (int i = 0; i < root.num_legal; ++i) {
      if (prior[i] >= 0.0f) offer(i, 0.0f);
    }
    if (best >= 0) return best;
    return root.num_edges > 0 ? edges.legal_index[0] : 0;  // all proven lost
  }

  SearchSettings settings_;
  float least_value_;
  std::vector<float> base_;  // [num_legal] gumbel + log prior
  std::vector<float> weights_;
  std::vector<uint32_t> schedule_;
  int schedule_considered_ = -1;
  int schedule_simulations_ = -1;
};

}  // namespace tengen
