#pragma once
// Exploration at the root of a PUCT search: a temperature on the priors, then Dirichlet noise.
// Source: Silver et al. 2017 (AlphaGo Zero), Methods, "Self-play".
// Differs from the paper: the concentration is a total spread over the legal moves, as in KataGo,
// so that it needs no constant a board size.

#include <cmath>

#include "base/rng.h"
#include "search/settings.h"

namespace tengen {

// prior[i] <- normalised prior[i]^(1/T); T == 1 leaves it as it is.
inline void apply_root_temperature(float* prior, int num_legal, float temperature) {
  if (temperature == 1.0f) return;
  double total = 0.0;
  for (int i = 0; i < num_legal; ++i) {
    prior[i] = static_cast<float>(std::pow(static_cast<double>(prior[i]), 1.0 / temperature));
    total += prior[i];
  }
  for (int i = 0; i < num_legal; ++i) prior[i] = static_cast<float>(prior[i] / total);
}

// prior <- (1 - weight) prior + weight Dirichlet(total / n, ..., total / n).
inline void add_root_noise(float* prior, int num_legal, const SearchSettings& settings, Rng& rng,
                           double* scratch) {
  double total = 0.0;
  for (int i = 0; i < num_legal; ++i) {
    scratch[i] = rng.gamma(settings.noise_alpha_total / num_legal);
    total += scratch[i];
  }
  if (total <= 0.0) return;
  for (int i = 0; i < num_legal; ++i) {
    const double noise = scratch[i] / total;
    prior[i] = static_cast<float>((1.0 - settings.noise_weight) * prior[i] +
                                  settings.noise_weight * noise);
  }
}

}  // namespace tengen
