#pragma once
// A position of Go with all history that later moves need.
//
// A search copies its root's state at every simulation and replays a few moves, so a copy contains
// only the used part: some 2 to 3.5 kB on 9x9, 7 to 14 on 19x19 (core/games/go/rules/history.h),
// and a third of a kB more if planes show earlier boards.

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hash.h"
#include "games/go/board/points.h"
#include "games/go/rules/history.h"
#include "games/go/rules/rules.h"
#include "games/planes.h"

namespace tengen {

class GoLayout;

// The content of a point. Players are numbered as everywhere: Black is the first.
inline constexpr uint8_t kGoBlack = 0;
inline constexpr uint8_t kGoWhite = 1;
inline constexpr uint8_t kGoEmpty = 2;
inline constexpr uint8_t kGoWall = 3;  // around the board

// A point. The stones of a chain form a ring, and the chain's data is stored at one of them, its
// head. An empty point's head is the wall, so a stone can update the head of every neighbour
// without checking what is there; the wall's data has no meaning.
struct GoPoint {
  // At a head: the sum of edge() over the empty neighbours of the chain's stones, once per adjacent
  // stone (GoBoard::edge).
  uint64_t liberties;
  uint16_t head;
  uint16_t next;  // next stone of the ring
  uint16_t size;  // number of stones, at a head
  uint8_t colour;
  uint8_t unused;
};
static_assert(sizeof(GoPoint) == 16);

// Points are numbered on the board of this game (games/go/board/layout.h).
struct GoSituation {
  static constexpr uint16_t kNoMove = 0xffff;
  static constexpr int kNumLastMoves = 5;

  GoRules rules;
  const GoLayout* layout =
      nullptr;  // owned by the Go object that made the position and that outlives it

  std::array<PointSet, 2> stones;
  // Points where stones of a player were captured. Only there can a move of that player recreate an
  // earlier board, because its stone must have been there before and been removed.
  std::array<PointSet, 2> vacated;
  Key128 key;  // depends on the stones
  // Points, or num_points for a pass, the latest first; kNoMove before the first move.
  std::array<uint16_t, kNumLastMoves> last_moves;
  uint16_t ko_point = kNoMove;  // closed to the recapture of a single stone
  uint16_t ply = 0;
  uint16_t num_points = 0;
  uint8_t to_play = kGoBlack;
  uint8_t num_passes = 0;    // in a row, up to now
  bool is_repeated = false;  // under the simple ko rule: this situation occurred before
};

// The stones of an earlier board.
struct GoEarlierBoard {
  std::array<PointSet, 2> stones;
  Key128 key;                                // depends on the stones
  uint16_t ko_point = GoSituation::kNoMove;  // at that time
};

struct GoState : GoSituation {
  KeyHistory boards;
  std::array<GoPoint, kGoMaxPoints + 1> points;  // [num_points] is the wall
  // The boards one ply ago and so on, empty before the start of the game. Written and copied only
  // if planes show them.
  std::array<GoEarlierBoard, kNumMinigoEarlierBoards> earlier;

  // Creates no board; positions come from Go::initial_state(). Leaves the large arrays
  // uninitialised: only their used part is written.
  GoState() {}
  explicit GoState(int num_buckets) : boards(num_buckets) {}
  GoState(const GoState& other) : GoSituation(other), boards(other.boards) { copy_arrays(other); }
  GoState& operator=(const GoState& other) {
    GoSituation::operator=(other);
    boards = other.boards;
    if (this != &other) copy_arrays(other);
    return *this;
  }

  // Marked [[unlikely]], to keep other games' code together: they were 3 % slower on 9x9 without.
  bool shows_earlier_boards() const { return rules.planes != GoPlanes::kOwn; }

 private:
  void copy_arrays(const GoState& other) {
    std::copy_n(other.points.data(), other.num_points + 1, points.data());
    if (other.shows_earlier_boards()) [[unlikely]] {
      earlier = other.earlier;
    }
  }
};

}  // namespace tengen
