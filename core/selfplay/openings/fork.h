#pragma once
// Forks: a game starts from a position of an earlier game, with the best of several random moves,
// so that the network learns the consequences of moves that it would not play. Source: Wu 2019,
// "Accelerating Self-Play Learning in Go", appendix D; KataGo (lightvector/KataGo), "earlyForkGame"
// and "forkGame". Differs from KataGo: games fork from games of the previous generation instead of
// the games that ended last, so that a game depends only on its index; a fork keeps the rules and
// komi of its source.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "games/game.h"
#include "selfplay/settings.h"

namespace tengen {

// The start of a fork: after `num_plies` plies of `source`, with the best of `num_choices` moves.
struct Fork {
  size_t source = 0;
  size_t num_plies = 0;
  uint32_t num_choices = 0;
};

// Decides at random whether a game is a fork, and from which position. The ply of an early fork is
// exponentially distributed, the ply of a late fork uniformly.
inline std::optional<Fork> draw_fork(const SelfplaySettings& settings,
                                     const std::vector<ForkSource>& sources, Rng& rng) {
  constexpr int kFewestChoices = 3;
  const double drawn = rng.uniform();
  const bool is_early = drawn < settings.early_fork_share;
  if (sources.empty() || drawn >= settings.early_fork_share + settings.late_fork_share) {
    return std::nullopt;
  }
  Fork fork;
  fork.source = rng.below(static_cast<uint32_t>(sources.size()));
  const size_t length = sources[fork.source].moves.size();
  if (length == 0) return std::nullopt;
  if (is_early) {
    const double plies = -std::log(rng.uniform_positive()) * settings.early_fork_plies;
    fork.num_plies = static_cast<size_t>(std::min(plies, static_cast<double>(length - 1)));
  } else {
    fork.num_plies = rng.below(static_cast<uint32_t>(length));
  }
  const int most = is_early ? settings.early_fork_choices : settings.late_fork_choices;
  const int span = std::max(0, most - kFewestChoices);
  fork.num_choices = static_cast<uint32_t>(kFewestChoices) + rng.below(uint32_t(span) + 1);
  return fork;
}

// Returns the position at which a fork chooses its move. Throws Error if a move is illegal.
template <Game G>
typename G::State position_of(const G& game, const ForkSource& source, size_t num_plies) {
  typename G::State state = initial_state_of(game, source.variant);
  play_moves(game, state, std::span(source.moves).first(num_plies), "fork source");
  return state;
}

// Evaluates sampled moves of a position one by one; no sampled move ends the game.
template <Game G>
class MoveTrial {
 public:
  // Samples up to `num_choices` different legal moves. `legal` needs space for every action.
  void begin(const G& game, const typename G::State& state, uint32_t num_choices, Rng& rng,
             uint16_t* legal) {
    choices_.clear();
    next_ = 0;
    best_ = kNone;
    const auto num_legal = static_cast<uint32_t>(game.legal_actions(state, legal));
    for (uint32_t i = 0; i < num_legal && choices_.size() < num_choices; ++i) {
      std::swap(legal[i], legal[i + rng.below(num_legal - i)]);
      typename G::State then = state;
      game.apply(then, legal[i]);
      if (game.outcome(then) == Outcome::kOngoing) choices_.push_back(legal[i]);
    }
  }

  void clear() { choices_.clear(), next_ = 0; }
  // Whether a move is waiting for its evaluation.
  bool is_waiting() const { return next_ < choices_.size(); }
  uint16_t move() const { return choices_[next_]; }

  // Accepts the value of the position after move(), in [-1, 1], for the player who makes the move.
  void accept(float value_to_mover) {
    if (best_ == kNone || value_to_mover > best_value_) {
      best_ = choices_[next_];
      best_value_ = value_to_mover;
    }
    ++next_;
  }

  static constexpr int kNone = -1;
  int best() const { return best_; }  // the best evaluated move; kNone before the first evaluation

 private:
  std::vector<uint16_t> choices_;
  size_t next_ = 0;
  int best_ = kNone;
  float best_value_ = 0.0f;
};

}  // namespace tengen
