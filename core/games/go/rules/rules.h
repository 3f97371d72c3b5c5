#pragma once
// The rules of a game of Go that a task's name says:
//
//   go/SIZE or go/HEIGHTxWIDTH, then any of these, in this order:
//   /situational /simple   the ko rule, where it is not positional superko
//   /nosuicide             a move may not leave its own chain without liberties
//   /komi=6.5              where it is not 7.5
//   /handicap=4            where it is not 0
//   /plies=500             where it is not twice the number of points
//   /planes=minigo         where a network is shown the planes of the MLPerf benchmark minigo, and
//                          the board is scored as it scores
//   /planes=katago         where a network is shown what KataGo shows its own
//
// A default is never written, so that a game has one name.

#include <cstdint>
#include <string>

namespace tengen {

enum class GoKo : uint8_t {
  kPositional = 0,   // no stone may bring back a board that was there before
  kSituational = 1,  // ... with the same side to move
  // The point of a single stone just captured by a single stone, whose one liberty it is, is
  // closed for one move. A stone that brings back a board that was there since the last pass, with
  // the same side to move, ends the game as a draw. (A pass starts afresh: else the loser could
  // send two stones and take one back until the winner, who has nothing to do, passes.)
  kSimple = 2,
};

// What a network is shown of a position: which of the lists of planes in games/planes.h.
enum class GoPlanes : uint8_t {
  kOwn = 0,
  kMinigo = 1,  // those of the MLPerf benchmark, with the boards of the last plies
  kKatago = 2,  // those of KataGo, with the ladders of the last plies
};

// Area scoring: each side has its stones and the empty points that reach no stone of the other
// (Tromp and Taylor); nothing is taken off as dead. Two passes in a row end the game.
//
// With GoPlanes::kMinigo a pass-alive region is its owner's first, and stones of the other side in
// it count for nothing: games/go/area/area.h.
//
// The defaults are the rules of Tromp and Taylor, which KataGo plays where nothing else is asked
// and among which its self-play draws: positional superko, suicide and 7.5 points, so that no game
// is drawn. They need no agreement on what is dead, and every game ends by itself.
struct GoRules {
  static constexpr int kMinSize = 2;
  static constexpr int kMaxSize = 19;
  static constexpr int kDefaultKomiHalfPoints = 15;

  int height = 19;
  int width = 19;
  GoKo ko = GoKo::kPositional;
  // Whether a chain of two stones and more may take its own last liberty, and goes off. A single
  // stone never may: that would be a pass which superko forbids.
  bool may_suicide = true;
  // What the second player, White, gets for moving second, in half points; whole points allow
  // draws.
  int komi_half_points = kDefaultKomiHalfPoints;
  // Stones of the first player, Black, on the fixed points of GTP at the start; White then moves
  // first. 0, or 2 up to what the board has points for.
  int handicap = 0;
  // A game that is not over after so many moves is scored as it stands. AlphaGo Zero's 722 on
  // 19x19.
  int max_plies = 2 * 19 * 19;
  GoPlanes planes = GoPlanes::kOwn;

  friend bool operator==(const GoRules&, const GoRules&) = default;
};

// The default rules on a board of sides kMinSize to kMaxSize.
GoRules make_go_rules(int height, int width);

// Throws Error naming the part that is wrong, and for rules that the board does not allow.
GoRules parse_go_name(const std::string& name);
// parse_go_name(go_name(rules)) == rules.
std::string go_name(const GoRules& rules);

// Whether a name is meant for parse_go_name.
bool is_go_name(const std::string& name);

}  // namespace tengen
