#pragma once
// Go on boards of 2 x 2 to 19 x 19, by the rules of core/games/go/rules.h.
//
// Black is the first player, also in handicap games, where White moves first. Actions: row * width
// + column, row 0 at the top; the last is a pass, which is always legal and which superko does not
// concern. Planes (18): core/games/planes.h. Symmetries: the 8 of the square, 4 on a rectangle.

#include <array>
#include <span>
#include <string>

#include "games/game.h"
#include "games/go/area.h"
#include "games/go/board.h"
#include "games/go/rules.h"
#include "games/go/state.h"
#include "games/planes.h"
#include "games/symmetry.h"

namespace tengen {

class Go {
 public:
  using State = GoState;

  // Rules as of make_go_rules() or parse_go_name().
  explicit Go(const GoRules& rules);

  std::string name() const { return go_name(rules_); }
  int num_actions() const { return num_points_ + 1; }
  int num_planes() const { return kNumGoPlanes; }
  int height() const { return rules_.height; }
  int width() const { return rules_.width; }
  int max_plies() const { return rules_.max_plies; }
  PolicyLayout policy_layout() const { return PolicyLayout::kCellsAndPass; }
  int num_symmetries() const { return num_board_symmetries(rules_.height, rules_.width); }

  State initial_state() const;
  int ply(const State& state) const { return state.ply; }
  int to_play(const State& state) const { return state.to_play; }

  Outcome outcome(const State& state) const;
  int legal_actions(const State& state, uint16_t* actions) const;
  bool is_legal(const State& state, int action) const;
  void apply(State& state, int action) const;

  Key128 key(const State& state) const;
  void encode(const State& state, int symmetry, float* planes) const;
  int transform_action(int action, int symmetry) const {
    return transformed_[static_cast<size_t>(symmetry)][static_cast<size_t>(action)];
  }
  std::string to_string(const State& state) const;

  const GoRules& rules() const { return rules_; }
  // Black's area less White's and komi, in half points, as the board stands.
  int score_half_points(const State& state) const;
  GoAreas area(const State& state) const { return area_of(board_, state); }
  GoAreas pass_alive(const State& state) const {
    return pass_alive_areas(board_, state, rules_.may_suicide);
  }

 private:
  bool is_finished(const State& state) const {
    return state.num_passes >= 2 || state.is_repeated || state.ply >= rules_.max_plies;
  }
  // Of the board and, but for positional superko, of the side to move.
  uint64_t situation_key(uint64_t stones, int to_play) const {
    return rules_.ko == GoKo::kPositional || to_play == kGoBlack ? stones : stones ^ kWhiteToPlay;
  }
  // What the side to move's stone on an empty point does, the ko rule aside.
  GoMoveKind kind_of(const State& state, int point) const;
  // Precondition: the point is empty, and kind_of() it is `kind`, not kImpossible.
  bool is_banned(const State& state, int point, GoMoveKind kind) const;
  // The empty points without an empty neighbour: what a stone does there depends on chains.
  PointSet hemmed_points(const State& state) const {
    const PointSet empty = board_.empty_points(state);
    return empty - board_.beside(empty);
  }
  // Where only the ko rule forbids a stone; `hemmed` is hemmed_points().
  PointSet banned_points(const State& state, const PointSet& hemmed) const;

  static constexpr uint64_t kWhiteToPlay = 0x9d6b1f2a53c8e047ull;

  GoRules rules_;
  int num_points_;
  GoBoard board_;
  Key128 rules_key_;
  std::array<std::array<uint16_t, kGoMaxPoints + 1>, kNumSquareSymmetries> transformed_{};
};

static_assert(Game<Go>);

}  // namespace tengen
