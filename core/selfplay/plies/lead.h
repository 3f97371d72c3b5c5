#pragma once
// Estimates the lead, the number of points that the side to move could give away, in komi, to make
// the position even. The lead measures the size of an advantage, while the value measures only the
// probability of a win. Source: KataGo (lightvector/KataGo), "estimateLeadProb" of its self-play
// and "computeLead". Differs from KataGo: the lead is estimated right after the position's own
// search, which provides the value at the real komi, rather than at the end of the game; komi
// changes in half points, and the first step is fixed.

#include <algorithm>

#include "games/game.h"

namespace tengen {

// Chooses the komi values to evaluate, one by one, until the position's value changes its sign
// between two adjacent komi values. The steps from the real komi double until the sign changes;
// then the interval is bisected. This takes 3 evaluations for leads up to 2 points, 5 up to 6, 7 up
// to 14, 9 up to 30, and at most 11 on 9x9 and 15 on 19x19.
//
// All amounts are in half points given away. Values are for the side to move, in [-1, 1], and are
// assumed to decrease with the amount. If they do not, one of the sign changes is found. A value of
// 0 counts as a sign change.
class LeadBisection {
 public:
  // `value` is the value of the position itself. A side that gives away `highest` certainly loses,
  // and a side that gives away `lowest` certainly wins.
  void begin(float value, int lowest, int highest) {
    is_ahead_ = value > 0.0f;
    low_ = is_ahead_ ? 0 : std::min(lowest, 0);
    high_ = is_ahead_ ? std::max(highest, 0) : 0;
    low_value_ = is_ahead_ ? value : 1.0f;
    high_value_ = is_ahead_ ? -1.0f : value;
    step_ = kFirstStep;
    if (value == 0.0f) low_ = high_ = 0;
  }

  // Whether accept() needs the value of the position with given_half_points() given away.
  bool is_waiting() const { return high_ - low_ > 1; }
  int given_half_points() const {
    const bool is_stepping = step_ > 0 && step_ < high_ - low_;
    if (is_stepping) return is_ahead_ ? low_ + step_ : high_ - step_;
    return low_ + (high_ - low_) / 2;
  }

  void accept(float value) {
    const int given = given_half_points();
    const bool is_still_ahead = value > 0.0f;
    (is_still_ahead ? low_ : high_) = given;
    (is_still_ahead ? low_value_ : high_value_) = value;
    if (value == 0.0f) low_ = given;
    step_ = is_still_ahead == is_ahead_ ? 2 * step_ : 0;
  }

  // The lead in points: the zero of the linear interpolation between the last two values.
  // Precondition: !is_waiting().
  float points() const {
    const float share = low_value_ / (low_value_ - high_value_);
    return (static_cast<float>(low_) + share * static_cast<float>(high_ - low_)) / 2.0f;
  }

 private:
  static constexpr int kFirstStep = 4;

  // The value is positive at low_ and negative at high_; if low_ == high_, the value there is 0.
  int low_ = 0;
  int high_ = 0;
  float low_value_ = 0.0f;
  float high_value_ = 0.0f;
  int step_ = 0;  // the next step; 0 bisects the interval
  bool is_ahead_ = false;
};

// Starts a bisection from `state`, whose own search returned `value` for the side to play.
template <HasKomi G>
void begin_lead(const G& game, const typename G::State& state, float value, LeadBisection& lead) {
  const int komi = game.komi_half_points(state);
  const int own = game.to_play(state) == 0 ? -komi : komi;
  const int most = 2 * game.num_points(state);
  lead.begin(value, own - most - 1, own + most + 1);
}

// Returns the position after the side to move has given away `half_points`.
template <HasKomi G>
typename G::State with_given(const G& game, const typename G::State& state, int half_points) {
  typename G::State other = state;
  const int to_second = game.to_play(state) == 0 ? half_points : -half_points;
  game.set_komi_half_points(other, game.komi_half_points(state) + to_second);
  return other;
}

}  // namespace tengen
