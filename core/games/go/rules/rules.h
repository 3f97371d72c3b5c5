#pragma once
// The rules of a game of Go, as given by a task's name:
//
//   go/SIZE or go/HEIGHTxWIDTH, then any of these, in this order:
//   /situational /simple   a ko rule other than positional superko
//   /nosuicide             a move may not leave its own chain without liberties
//   /komi=6.5              a komi other than 7.5
//   /handicap=4            a handicap other than 0
//   /plies=500             a maximum length other than twice the number of points
//   /planes=minigo         input planes and scoring of the MLPerf benchmark minigo
//   /planes=katago         KataGo's input planes
//
// A name never contains default values, so each game has exactly one name.

#include <cstdint>
#include <string>

namespace tengen {

enum class GoKo : uint8_t {
  kPositional = 0,   // no stone may recreate an earlier board
  kSituational = 1,  // ... with the same side to move
  // If a single stone with one liberty has just captured a single stone, the captured stone's point
  // is closed for one move. A stone that recreates a board since the last pass, with the same side
  // to move, ends the game as a draw. (Boards before a pass do not count, because otherwise the
  // loser could send two stones and recapture one until the winner, who has nothing to do, passes.)
  kSimple = 2,
};

// The network's inputs: one of the lists of planes in games/planes.h.
enum class GoPlanes : uint8_t {
  kOwn = 0,
  kMinigo = 1,  // inputs of the MLPerf benchmark, with the boards of the last plies
  kKatago = 2,  // KataGo's inputs, with the ladders of the last plies
};

// Area scoring (Tromp and Taylor): each side owns its stones and the empty points that reach only
// its stones; no dead stones are removed. Two consecutive passes end the game.
//
// With GoPlanes::kMinigo a pass-alive region belongs to its owner, including the opponent's stones
// in it (games/go/area/area.h).
//
// The defaults are the Tromp-Taylor rules, which are also KataGo's default: positional superko,
// suicide, and 7.5 points of komi, so that no game is drawn. The players need not agree on dead
// stones, and superko guarantees that every game ends.
struct GoRules {
  static constexpr int kMinSize = 2;
  static constexpr int kMaxSize = 19;
  static constexpr int kDefaultKomiHalfPoints = 15;

  int height = 19;
  int width = 19;
  GoKo ko = GoKo::kPositional;
  // Whether a move may take the last liberty of its own chain of two or more stones, which is then
  // removed. A single stone must not, because that would leave the board unchanged, as a pass does.
  bool may_suicide = true;
  // White's compensation for moving second, in half points; whole points allow draws.
  int komi_half_points = kDefaultKomiHalfPoints;
  // The number of Black's stones on the fixed points of GTP at the start: 0, or 2 to the board's
  // maximum. White then moves first.
  int handicap = 0;
  // The maximum number of moves, after which the board is scored. The default is AlphaGo Zero's.
  int max_plies = 2 * 19 * 19;
  GoPlanes planes = GoPlanes::kOwn;

  friend bool operator==(const GoRules&, const GoRules&) = default;
};

// Returns the default rules for a board with sides from kMinSize to kMaxSize.
GoRules make_go_rules(int height, int width);

// Parses a task's name. Throws Error if it is malformed or the board does not allow the rules.
GoRules parse_go_name(const std::string& name);
// Returns the name of a game with these rules: parse_go_name(go_name(rules)) == rules.
std::string go_name(const GoRules& rules);

// Whether parse_go_name() should parse `name`.
bool is_go_name(const std::string& name);

}  // namespace tengen
