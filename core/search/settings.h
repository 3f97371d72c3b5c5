#pragma once
// Settings of a search. The Python config, with a docstring per field, is
// tengen/search.py; both must list the same fields.

#include <cstdint>
#include <vector>

namespace tengen {

enum class RootPolicy : uint8_t { kPuct = 0, kGumbel = 1, kMinigo = 2 };

struct SearchSettings {
  RootPolicy policy = RootPolicy::kPuct;
  // PUCT: c(N) = cpuct + cpuct_log * ln((N + cpuct_base) / cpuct_base).
  float cpuct = 1.1f;
  float cpuct_log = 0.45f;
  float cpuct_base = 500.0f;
  // The share of c(N) that is scaled with the spread of the node's values; 0 disables this.
  float cpuct_stdev_scale = 0.0f;
  // The value of an unvisited child: Q(parent) - reduction * sqrt(prior mass of visited children).
  float fpu_reduction = 0.2f;
  float root_fpu_reduction = 0.0f;
  // Whether the root's evaluation is the mean over all symmetries of the board.
  bool root_symmetries = false;
  // Root noise: Dirichlet with total concentration `noise_alpha_total`, divided among legal moves.
  float noise_alpha_total = 10.83f;
  float noise_weight = 0.25f;
  // Whether half of the noise concentration goes only to moves whose log prior is above the mean.
  bool noise_shaped = false;
  // The temperature T of the root's priors, P^(1/T), applied before the noise.
  float root_temperature = 1.0f;
  // The k in sqrt(k * prior * N), the minimum visits of a visited root move when exploring. The
  // policy target excludes the forced visits. 0 forces nothing.
  float forced_playouts = 0.0f;
  // The best action has the highest mean value minus this many standard errors; 0: most visits.
  float lcb_stdevs = 0.0f;
  // The search maximises win minus loss plus this weight times a saturating function of the final
  // score (search/evaluation/score_utility.h). The function's center is the expected score minus
  // the share `score_center_zero_weight` of it; its scale is in board sides.
  float score_weight = 0.0f;
  float score_center_zero_weight = 0.25f;
  float score_scale = 0.5f;
  // Gumbel sequential halving.
  int gumbel_considered = 16;
  float gumbel_visit = 50.0f;
  float gumbel_scale = 1.0f;
  // The search of the MLPerf benchmark minigo (search/minigo/minigo_search.h): c(N) = 2 (c_init +
  // ln((1 + N + c_base) / c_base)); the reduction of an unvisited child's value relative to its
  // parent's evaluation; leaves per batch; the concentration of the noise per legal move.
  float minigo_c_init = 1.25f;
  float minigo_c_base = 19652.0f;
  float minigo_value_penalty = 0.2f;
  int minigo_virtual_losses = 4;
  float minigo_noise_alpha = 0.03f;

  // Whether a search with these settings must sum squared values.
  bool keeps_squares() const { return cpuct_stdev_scale > 0.0f || lcb_stdevs > 0.0f; }

  // The lowest possible utility of a move: a loss by a very large score.
  float least_value() const { return -1.0f - score_weight; }
};

// Excludes `action` for `player` at fewer than `depth` moves below the root.
struct LeftOut {
  int player;
  int action;
  int depth;  // 1 excludes the action only at the root
};

// One search: its length, excluded actions, and the source of its random numbers.
struct SearchRequest {
  int num_simulations = 64;       // descents below the root, without the root's own evaluation
  std::vector<LeftOut> left_out;  // exclusions; ignored in a position without another action
  bool keep_squares = false;      // whether to sum squared values in any case, for standard errors
  bool explore = false;           // whether to use root noise and root temperature, or Gumbel noise
  uint64_t seed = 0;
  uint64_t generation = 0;
  uint64_t game = 0;
  uint32_t ply = 0;
  // Whether the result and every evaluation have scores. Implied if the settings maximise scores.
  bool keep_scores = false;
  // Whether to consider all legal actions, as is implied if actions are left out; otherwise only
  // those that the rules leave (games/decisive.h).
  bool considers_all = false;
};

}  // namespace tengen
