#pragma once
// A Go position with the history that later moves need.
//
// A search copies its root's state at every simulation and replays a few moves. A copy therefore
// includes only the used part of the arrays: about 2 to 3.5 kB on 9x9 and 7 to 14 kB on 19x19
// (core/games/go/rules/history.h), plus a third of a kB if the planes show earlier boards.

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

// The content of a point. Black is player 0, the first player.
inline constexpr uint8_t kGoBlack = 0;
inline constexpr uint8_t kGoWhite = 1;
inline constexpr uint8_t kGoEmpty = 2;
inline constexpr uint8_t kGoWall = 3;  // the content beyond the board's edge

// A point. The stones of a chain form a ring, and the chain's data is stored at one of them, its
// head. An empty point's head is the wall, so placing a stone updates the heads of all neighbours
// without checking their content; the data at the wall is meaningless.
struct GoPoint {
  // At a head: the sum of GoBoard::edge() over the empty neighbours of the chain's stones, counted
  // once per adjacent stone.
  uint64_t liberties;
  uint16_t head;
  uint16_t next;  // next stone of the ring
  uint16_t size;  // at a head: the chain's number of stones
  uint8_t colour;
  uint8_t unused;
};
static_assert(sizeof(GoPoint) == 16);

// The fixed-size data of a position. Points are indices on its board (games/go/board/layout.h).
struct GoSituation {
  static constexpr uint16_t kNoMove = 0xffff;
  static constexpr int kNumLastMoves = 5;

  GoRules rules;
  const GoLayout* layout =
      nullptr;  // owned by the Go object that created the state, which must outlive it

  std::array<PointSet, 2> stones;
  // Points where stones of each player were removed. Except by suicide, a player can recreate an
  // earlier board only with a move there, because the moved stone must have stood there before.
  std::array<PointSet, 2> vacated;
  Key128 key;  // hash of the stones
  // The last moves, newest first: points, num_points for a pass, kNoMove before the first move.
  std::array<uint16_t, kNumLastMoves> last_moves;
  uint16_t ko_point = kNoMove;  // the point that the simple ko rule closes, if any
  uint16_t ply = 0;
  uint16_t num_points = 0;
  uint8_t to_play = kGoBlack;
  uint8_t num_passes = 0;    // number of consecutive passes up to this position
  bool is_repeated = false;  // simple ko only: whether this situation occurred before
};

// The stones of an earlier board.
struct GoEarlierBoard {
  std::array<PointSet, 2> stones;
  Key128 key;                                // hash of the stones
  uint16_t ko_point = GoSituation::kNoMove;  // the ko_point of that board
};

struct GoState : GoSituation {
  KeyHistory boards;
  std::array<GoPoint, kGoMaxPoints + 1> points;  // [num_points] is the wall
  // The boards one ply ago, two plies ago and so on; empty if before the start of the game. Written
  // and copied only if the planes show them.
  std::array<GoEarlierBoard, kNumMinigoEarlierBoards> earlier;

  // Does not create a valid position; use Go::initial_state(). Leaves the large arrays
  // uninitialised, because only their used part is written.
  GoState() {}
  explicit GoState(int num_buckets) : boards(num_buckets) {}
  GoState(const GoState& other) : GoSituation(other), boards(other.boards) { copy_arrays(other); }
  GoState& operator=(const GoState& other) {
    GoSituation::operator=(other);
    boards = other.boards;
    if (this != &other) copy_arrays(other);
    return *this;
  }

  // Callers mark the result [[unlikely]]; without that, 9x9 games with own planes were 3 % slower.
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
