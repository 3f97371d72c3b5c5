#pragma once
// The utility that a search maximises if the settings count the score: win minus loss, plus
//
//   score_weight * E[f(score)],  f(x) = 2 / pi * atan((x - center) / (score_scale * board side))
//
// over a normal distribution of the score with the evaluation's mean and standard deviation. Points
// thus decide between moves with equal results. They count more the closer the score is to the
// expected score at the start of the search, so even far ahead or behind the next point has value.
// Source: Wu 2019, "Accelerating self-play learning in Go", appendix D (score maximization);
// defaults and the zero weight of the center are KataGo's (lightvector/KataGo).
// Differs from KataGo: there is no static term, E[f] is computed by quadrature instead of a table,
// and a reused tree keeps its center.
//
// A settled position has the utility of its result and of the score of the line that settles it,
// which is the best score for its side among the positions that prove it. A search does not
// continue for more points after the result is settled.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "games/game.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// E[2 / pi * atan(mean + stdev * Z)] for a standard normal Z; error below 0.001 for `stdev` 0..20.
inline double expected_saturated(double mean, double stdev) {
  // The trapezoidal rule. Its error for analytic functions decreases exponentially with 1 / step. A
  // larger `stdev` needs a smaller step, because the poles of atan come closer.
  static constexpr int kStepsPerUnit = 32;
  static constexpr int kReach = 5 * kStepsPerUnit;
  static const std::array<double, kReach + 1> density = [] {
    std::array<double, kReach + 1> made{};
    for (int i = 0; i <= kReach; ++i) {
      const double z = static_cast<double>(i) / kStepsPerUnit;
      made[static_cast<size_t>(i)] = std::exp(-0.5 * z * z);
    }
    return made;
  }();
  int stride = kStepsPerUnit / 2;
  while (stride > 1 && stdev * stride > 0.7 * kStepsPerUnit) stride /= 2;
  double total = 1.0;
  double sum = std::atan(mean);
  for (int i = stride; i <= kReach; i += stride) {
    const double offset = stdev * i / kStepsPerUnit;
    const double weight = density[static_cast<size_t>(i)];
    sum += weight * (std::atan(mean + offset) + std::atan(mean - offset));
    total += 2.0 * weight;
  }
  return M_2_PI * sum / total;
}

// Throws Error if the settings count the score but the game has none.
template <Game G>
void check_score(const G& game, const SearchSettings& settings) {
  if (HasScore<G> || settings.score_weight == 0.0f) return;
  throw Error("search.score_weight (" + std::to_string(settings.score_weight) + ") must be 0 in " +
              std::string(game.name()) + ", which has no score; leave it out");
}

// The score of a finished game, in points for the side to play; 0 in games without a score.
template <Game G>
float final_score(const G& game, const typename G::State& state) {
  if constexpr (HasScore<G>) {
    const float to_first = game.score(state);
    return game.to_play(state) == 0 ? to_first : -to_first;
  }
  return 0.0f;
}

// Computes the utilities of one search at a time. Not thread-safe except for its const methods.
class ScoreUtility {
 public:
  explicit ScoreUtility(const SearchSettings& settings)
      : weight_(settings.score_weight),
        zero_weight_(settings.score_center_zero_weight),
        scale_(settings.score_scale) {}

  // Whether the utility includes the score.
  bool counts() const { return weight_ > 0.0f; }

  // Sets the center for a new tree. The board has `num_points` cells, and the game is expected to
  // end with `score_to_first` points for the first player.
  void center(int num_points, double score_to_first) {
    width_ = scale_ * std::sqrt(static_cast<double>(num_points));
    // The center stays within one width of the expected score.
    const double pull = std::clamp(zero_weight_ * score_to_first, -width_, width_);
    center_to_first_ = score_to_first - pull;
  }

  // Returns the utility of a position for `to_play`. `value` is win minus loss.
  float operator()(float value, float score, float stdev, int to_play) const {
    if (!counts()) return value;
    const double center = to_play == 0 ? center_to_first_ : -center_to_first_;
    return value + static_cast<float>(
                       weight_ * expected_saturated((score - center) / width_, stdev / width_));
  }

  // Returns the visit that a descent adds to a settled node.
  template <class Memory>
  Visit settled(const BasicTree<Memory>& tree, const Node& node, Proof proof) const {
    const float value = proof_value(proof);
    if (!tree.keeps_scores()) return {value, value, 0.0f};
    const float score = tree.score_of(node).score_to_play;
    return {(*this)(value, score, 0.0f, node.to_play), value, score};
  }

  // Returns the visit that an evaluation adds to its node. `score` is as in Search::accept().
  Visit evaluated(const Node& node, float win_loss, const float* score) const {
    return {(*this)(win_loss, score[0], score[1], node.to_play), win_loss, score[0]};
  }

 private:
  double weight_;
  double zero_weight_;
  double scale_;
  double width_ = 1.0;
  double center_to_first_ = 0.0;
};

// Stores an evaluation in `node`. `score` is the mean and the standard deviation in points for the
// side to play. Throws Error if it is null or not finite.
inline void put_score(NodeScore& node, float win_loss, const float* score) {
  if (score == nullptr) {
    throw Error("evaluation (no score) must have a score; use a network that predicts it");
  }
  if (!std::isfinite(score[0]) || !std::isfinite(score[1])) {
    throw Error("evaluation (not finite) must be finite; use another model");
  }
  node.win_loss_to_play = win_loss;
  node.score_to_play = score[0];
}

}  // namespace tengen
