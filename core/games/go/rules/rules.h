#pragma once
// The rules of a game of Go, as given by a task's name:
//
//   go/SIZE or go/HEIGHTxWIDTH, then any of these, in this order:
//   /situational /simple   another ko rule than positional superko
//   /nosuicide             a move may not leave its own chain without liberties
//   /komi=6.5              another komi than 7.5
//   /handicap=4            a handicap other than 0
//   /plies=500             another maximum length than twice the number of points
//   /planes=minigo         input planes and scoring of the MLPerf benchmark minigo
//   /planes=katago         KataGo's input planes
//
// Defaults are never written, so that a game has exactly one name.

#include <cstdint>
#include <string>

namespace tengen {

enum class GoKo : uint8_t {
  kPositional = 0,   // no stone may recreate an earlier board
  kSituational = 1,  // ... with the same side to move
  // The point of a single stone just captured by a single stone with one liberty is closed for one
  // move. A stone that recreates a board since the last pass, with the same side to move, ends the
  // game as a draw. (A pass resets this: otherwise the loser could send two stones and recapture
  // one until the winner, who has nothing to do, passes.)
  kSimple = 2,
};

// The network's inputs: one of the lists of planes in games/planes.h.
enum class GoPlanes : uint8_t {
  kOwn = 0,
  kMinigo = 1,  // those of the MLPerf benchmark, with the boards of the last plies
  kKatago = 2,  // those of KataGo, with the ladders of the last plies
};

// Area scoring: each side has its stones and the empty points that reach no stone of the other
// (Tromp and Taylor); no dead stones are removed. Two passes in a row end the game.
//
// With GoPlanes::kMinigo a pass-alive region belongs to its owner, including stones of the other
// side in it: games/go/area/area.h.
//
// The defaults are the Tromp-Taylor rules, KataGo's own default: positional superko, suicide
// and 7.5 points, so that no game is drawn. They need no agreement on dead stones, and every game
// ends by itself.
struct GoRules {
  static constexpr int kMinSize = 2;
  static constexpr int kMaxSize = 19;
  static constexpr int kDefaultKomiHalfPoints = 15;

  int height = 19;
  int width = 19;
  GoKo ko = GoKo::kPositional;
  // Whether a chain of two or more stones may fill its own last liberty and is then removed. A
  // single stone never may: that would be a pass, which superko forbids.
  bool may_suicide = true;
  // White's compensation for moving second, in half points; whole points allow draws.
  int komi_half_points = kDefaultKomiHalfPoints;
  // Stones of the first player, Black, on the fixed points of GTP at the start; White then moves
  // first. 0, or 2 up to the maximum for the board.
  int handicap = 0;
  // The maximum number of moves; then the board is scored. AlphaGo Zero's 722 on 19x19.
  int max_plies = 2 * 19 * 19;
  GoPlanes planes = GoPlanes::kOwn;

  friend bool operator==(const GoRules&, const GoRules&) = default;
};

// The default rules on a board with sides from kMinSize to kMaxSize.
GoRules make_go_rules(int height, int width);

// Throws an Error that names the wrong part, or rules that the board does not allow.
GoRules parse_go_name(const std::string& name);
// parse_go_name(go_name(rules)) == rules.
std::string go_name(const GoRules& rules);

// Whether a name should be parsed with parse_go_name.
bool is_go_name(const std::string& name);

}  // namespace tengen
