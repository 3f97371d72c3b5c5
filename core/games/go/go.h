#pragma once
// Go on boards of 2 x 2 to 19 x 19, with the rules of core/games/go/rules/rules.h.
//
// Black is the first player, even in handicap games, where White moves first. Actions: row * width
// + column, row 0 at the top; the last action is a pass, which is always legal and not subject to
// superko. Planes (20; 14 with /planes=minigo, 29 with /planes=katago): core/games/planes.h.
// Symmetries: the 8 of the square, 4 on a rectangle.
//
// A variant has a board that fits, any rules, and the game's planes; its name has the same form as
// the game's. A smaller board is placed and transformed in the upper left corner of the planes, so
// a rectangular board in square planes also has 8 symmetries.

#include <memory>
#include <string>

#include "games/game.h"
#include "games/go/area/area.h"
#include "games/go/board/layout.h"
#include "games/go/board/state.h"
#include "games/go/rules/rules.h"
#include "games/planes.h"

namespace tengen {

class GoPlaneWriter;

class Go {
 public:
  using State = GoState;

  // Precondition: `rules` come from make_go_rules() or parse_go_name().
  explicit Go(const GoRules& rules);

  std::string name() const { return go_name(rules_); }
  int num_actions() const { return rules_.height * rules_.width + 1; }
  int num_planes() const {
    if (rules_.planes == GoPlanes::kMinigo) return kNumMinigoPlanes;
    return rules_.planes == GoPlanes::kKatago ? kNumKatagoPlanes : kNumGoPlanes;
  }
  int height() const { return rules_.height; }
  int width() const { return rules_.width; }
  int max_plies() const { return rules_.max_plies; }
  PolicyLayout policy_layout() const { return PolicyLayout::kCellsAndPass; }
  int num_symmetries() const { return num_board_symmetries(rules_.height, rules_.width); }

  State initial_state() const { return initial_state(rules_); }
  State initial_state(const std::string& variant) const;
  int ply(const State& state) const { return state.ply; }
  int to_play(const State& state) const { return state.to_play; }

  Outcome outcome(const State& state) const;
  int legal_actions(const State& state, uint16_t* actions) const;
  bool is_legal(const State& state, int action) const;
  void apply(State& state, int action) const;

  Key128 key(const State& state) const;
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State& state, int symmetry) const {
    return state.layout->images(symmetry);
  }
  std::string to_string(const State& state) const;

  // Returns the number of points plus the usual range of komi.
  int max_score() const { return rules_.height * rules_.width + kUsualKomiRange; }
  int num_points(const State& state) const { return state.num_points; }
  // Whether all points are pass-alive and the game has not ended; dead stones may remain.
  bool is_settled(const State& state) const;
  float score(const State& state) const {
    return static_cast<float>(half_points(state, final_area(state))) / 2.0f;
  }
  void owners(const State& state, int8_t* cells) const;
  void pass_alive_cells(const State& state, uint8_t* cells) const;
  int komi_half_points(const State& state) const { return state.rules.komi_half_points; }
  void set_komi_half_points(State& state, int half_points) const {
    state.rules.komi_half_points = half_points;
  }
  // Black's area minus White's area and komi on the current board, in half points.
  int score_half_points(const State& state) const { return half_points(state, area(state)); }
  GoAreas area(const State& state) const {
    const GoBoard& board = state.layout->board();
    if (is_minigo(state)) return minigo_area_of(board, state, state.rules.may_suicide);
    return area_of(board, state);
  }
  GoAreas pass_alive(const State& state) const {
    const GoBoard& board = state.layout->board();
    const bool may_suicide = state.rules.may_suicide;
    return is_minigo(state) ? minigo_pass_alive_areas(board, state, may_suicide)
                            : pass_alive_areas(board, state, may_suicide);
  }

 private:
  static bool is_minigo(const State& state) { return state.rules.planes == GoPlanes::kMinigo; }
  static int half_points(const State& state, const GoAreas& owned) {
    return 2 * (owned[kGoBlack].count() - owned[kGoWhite].count()) - state.rules.komi_half_points;
  }
  // The area by the rules if the game has ended, otherwise the pass-alive area.
  GoAreas final_area(const State& state) const {
    return is_finished(state) ? area(state) : pass_alive(state);
  }
  State initial_state(const GoRules& rules) const;
  // The implementations of encode() for each list of planes, in games/go/encode.cc.
  void encode_own(const State& state, int symmetry, float* planes) const;
  void encode_minigo(const State& state, int symmetry, float* planes) const;
  void encode_katago(const State& state, int symmetry, float* planes) const;
  // Writes planes 0 to 6 of every list except minigo's.
  void encode_stones(const State& state, const GoPlaneWriter& writer) const;
  bool is_finished(const State& state) const {
    return state.num_passes >= 2 || state.is_repeated || state.ply >= state.rules.max_plies;
  }
  // The key of the stones and, except with positional superko, of the side to move.
  uint64_t situation_key(const State& state, uint64_t stones, int to_play) const {
    return state.rules.ko == GoKo::kPositional || to_play == kGoBlack ? stones
                                                                      : stones ^ kWhiteToPlay;
  }
  // The effect of a stone of the side to move on an empty point, ignoring the ko rule.
  GoMoveKind kind_of(const State& state, int point) const;
  // Whether ko forbids a stone on an empty point. `kind` is kind_of(), and not kImpossible.
  bool is_banned(const State& state, int point, GoMoveKind kind) const;
  // The empty points without an empty neighbour, where a stone's effect depends on adjacent chains.
  PointSet hemmed_points(const State& state) const {
    const GoBoard& board = state.layout->board();
    const PointSet empty = board.empty_points(state);
    return empty - board.beside(empty);
  }
  // The points where only the ko rule forbids a stone. `hemmed` is hemmed_points(state).
  PointSet banned_points(const State& state, const PointSet& hemmed) const;

  static constexpr int kUsualKomiRange = 20;
  static constexpr uint64_t kWhiteToPlay = 0x9d6b1f2a53c8e047ull;

  GoRules rules_;
  std::shared_ptr<GoLayouts> layouts_;
};

static_assert(HasVariants<Go> && HasKomi<Go> && HasPassAlive<Go>);

}  // namespace tengen
