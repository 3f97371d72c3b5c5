#pragma once
// The lead: how many points the side to move could give the opponent, in komi, until the position
// is even. It says how much a position is won by, where its value only says how surely.
// Source: KataGo (lightvector/KataGo), "estimateLeadProb" of its self-play and "computeLead".
// Differs from KataGo: a position is asked for right after its own search, whose value is the one
// at the real komi, and not when its game is over; komi moves by half points, and the first step is
// fixed.

#include <algorithm>

#include "games/game.h"

namespace tengen {

// Which values of komi to ask for, one by one, until the value changes its sign between two that
// lie side by side. Steps from the real komi double until it does, and what lies between the last
// two is halved: 3 values for leads up to 2 points, 5 up to 6, 7 up to 14, 9 up to 30, and 11 at
// the most on 9x9, 15 on 19x19.
//
// All in half points given away; values are the side to move's, in [-1, 1], and are taken to fall
// as more is given. Where they do not, one of the places where they change their sign is found; a
// value of 0 is such a place.
class LeadBisection {
 public:
  // `value`: of the position as it is. Who gives `highest` has lost, and who gives `lowest` has
  // won, whatever is played.
  void begin(float value, int lowest, int highest) {
    is_ahead_ = value > 0.0f;
    low_ = is_ahead_ ? 0 : std::min(lowest, 0);
    high_ = is_ahead_ ? std::max(highest, 0) : 0;
    low_value_ = is_ahead_ ? value : 1.0f;
    high_value_ = is_ahead_ ? -1.0f : value;
    step_ = kFirstStep;
    if (value == 0.0f) low_ = high_ = 0;
  }

  // Whether another value is wanted: of the position when given_half_points() are given.
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

  // In points: where the line between the last two values is 0. Precondition: nothing is wanted.
  float points() const {
    const float share = low_value_ / (low_value_ - high_value_);
    return (static_cast<float>(low_) + share * static_cast<float>(high_ - low_)) / 2.0f;
  }

 private:
  static constexpr int kFirstStep = 4;

  // The value is positive at low_ and negative at high_; where they are one, it is 0.
  int low_ = 0;
  int high_ = 0;
  float low_value_ = 0.0f;
  float high_value_ = 0.0f;
  int step_ = 0;  // the next one; 0: there are no more
  bool is_ahead_ = false;
};

// Begins with a position whose own search gave `value`, to play.
template <HasKomi G>
void begin_lead(const G& game, const typename G::State& state, float value, LeadBisection& lead) {
  const int komi = game.komi_half_points(state);
  const int own = game.to_play(state) == 0 ? -komi : komi;
  const int most = 2 * game.num_points(state);
  lead.begin(value, own - most - 1, own + most + 1);
}

// The position when the side to move has given so many half points.
template <HasKomi G>
typename G::State with_given(const G& game, const typename G::State& state, int half_points) {
  typename G::State other = state;
  const int to_second = game.to_play(state) == 0 ? half_points : -half_points;
  game.set_komi_half_points(other, game.komi_half_points(state) + to_second);
  return other;
}

}  // namespace tengen
