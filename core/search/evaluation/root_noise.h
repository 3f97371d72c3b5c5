#pragma once
// Exploration at the root of a PUCT search: first a temperature on the priors, then Dirichlet
// noise. Source: Silver et al. 2017 (AlphaGo Zero), Methods, "Self-play". Differs from the paper,
// as in KataGo: the total concentration is divided among the legal moves, so no constant per board
// size is needed, and optionally half of it depends on the prior, so that noise favours promising
// moves.

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// prior[i] <- normalised prior[i]^(1/T); T == 1 changes nothing.
inline void apply_root_temperature(float* prior, int num_legal, float temperature) {
  if (temperature == 1.0f) return;
  double total = 0.0;
  for (int i = 0; i < num_legal; ++i) {
    prior[i] = static_cast<float>(std::pow(static_cast<double>(prior[i]), 1.0 / temperature));
    total += prior[i];
  }
  for (int i = 0; i < num_legal; ++i) prior[i] = static_cast<float>(prior[i] / total);
}

// share[i] <- move i's share of the noise's concentration. Half is uniform; half is proportional to
// the excess of ln(min(prior, 0.01)) over its mean for the legal moves.
inline void shape_noise(const float* prior, int num_legal, double* share) {
  double mean = 0.0;
  for (int i = 0; i < num_legal; ++i) {
    share[i] = std::log(std::min(static_cast<double>(prior[i]), 0.01) + 1e-20);
    mean += share[i];
  }
  mean /= num_legal;
  double above = 0.0;
  for (int i = 0; i < num_legal; ++i) above += share[i] = std::max(0.0, share[i] - mean);
  const double even = 1.0 / num_legal;
  for (int i = 0; i < num_legal; ++i) {
    share[i] = above > 0.0 ? 0.5 * (even + share[i] / above) : even;
  }
}

// prior <- (1 - weight) * prior + weight * Dirichlet(concentration). Overwrites `concentration`.
// Does not change `prior` if all gamma samples underflow.
inline void mix_noise(float* prior, int num_legal, float weight, Rng& rng, double* concentration) {
  double total = 0.0;
  for (int i = 0; i < num_legal; ++i) total += concentration[i] = rng.gamma(concentration[i]);
  if (total <= 0.0) return;
  for (int i = 0; i < num_legal; ++i) {
    const double noise = concentration[i] / total;
    prior[i] = static_cast<float>((1.0 - weight) * prior[i] + weight * noise);
  }
}

// Mixes noise into `prior`. Moves share the concentration equally or according to shape_noise().
inline void add_root_noise(float* prior, int num_legal, const SearchSettings& settings, Rng& rng,
                           double* scratch) {
  if (settings.noise_shaped) {
    shape_noise(prior, num_legal, scratch);
    for (int i = 0; i < num_legal; ++i) scratch[i] *= settings.noise_alpha_total;
  } else {
    std::fill_n(scratch, num_legal, settings.noise_alpha_total / num_legal);
  }
  mix_noise(prior, num_legal, settings.noise_weight, rng, scratch);
}

// prior[i] <- the prior of the root's i-th legal action, whether it has an edge or not.
inline void read_priors(const Tree& tree, const Node& root, float* prior) {
  std::copy_n(tree.priors(root), root.num_legal, prior);
  const Edges edges = tree.edges(root);
  for (int i = 0; i < root.num_edges; ++i) prior[edges.legal_index[i]] = edges.prior[i];
}

// Applies temperature and noise to the root's priors. Overwrites `prior` and `scratch`.
inline void explore_root(Tree& tree, const SearchSettings& settings, const SearchRequest& request,
                         float* prior, double* scratch) {
  const Node& root = tree.node(tree.root());
  const int n = root.num_legal;
  read_priors(tree, root, prior);
  apply_root_temperature(prior, n, settings.root_temperature);
  Rng rng(request.seed, request.generation, request.game, request.ply, Purpose::kRootNoise);
  add_root_noise(prior, n, settings, rng, scratch);
  tree.set_priors(tree.root(), prior);
}

}  // namespace tengen
