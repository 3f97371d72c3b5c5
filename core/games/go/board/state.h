#pragma once
// A position of Go with all that later moves need of its past.
//
// A search copies its root's state at every simulation and replays a few moves, so a copy takes
// the points of the board and the boards of the game, not the room that there would be: some
// 2 to 3.5 kB on 9x9, 7 to 14 on 19x19 (core/games/go/rules/history.h), and a third of a kB more
// where planes show earlier boards.

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

// What lies on a point. Players are numbered as everywhere: Black is the first.
inline constexpr uint8_t kGoBlack = 0;
inline constexpr uint8_t kGoWhite = 1;
inline constexpr uint8_t kGoEmpty = 2;
inline constexpr uint8_t kGoWall = 3;  // around the board

// A point. Stones of a chain are a ring, and what is known of the chain lies at one of them, its
// head. An empty point's head is the wall, so that a stone may count at the head of every
// neighbour without asking what is there; what the wall counts means nothing.
struct GoPoint {
  // At a head: the sum of edge() of the empty neighbours of the chain's stones, each as often as
  // it has such stones beside it (GoBoard::edge).
  uint64_t liberties;
  uint16_t head;
  uint16_t next;  // stone of the ring
  uint16_t size;  // stones, at a head
  uint8_t colour;
  uint8_t unused;
};
static_assert(sizeof(GoPoint) == 16);

// Points are numbered on the board of this very game (games/go/board/layout.h).
struct GoSituation {
  static constexpr uint16_t kNoMove = 0xffff;
  static constexpr int kNumLastMoves = 5;

  GoRules rules;
  const GoLayout* layout = nullptr;  // of the Go that made the position, which outlives it

  std::array<PointSet, 2> stones;
  // Where stones of a player have been taken off. Only there can a move of that player bring back
  // an earlier board: its stone was there then, and is not now.
  std::array<PointSet, 2> vacated;
  Key128 key;  // of the stones
  // Points, num_points for a pass, the latest first; kNoMove before them.
  std::array<uint16_t, kNumLastMoves> last_moves;
  uint16_t ko_point = kNoMove;  // closed to a single stone's recapture
  uint16_t ply = 0;
  uint16_t num_points = 0;
  uint8_t to_play = kGoBlack;
  uint8_t num_passes = 0;    // in a row, up to now
  bool is_repeated = false;  // under the simple ko rule: this situation was there before
};

// What stood on a board before.
struct GoEarlierBoard {
  std::array<PointSet, 2> stones;
  Key128 key;                                // of the stones
  uint16_t ko_point = GoSituation::kNoMove;  // as it was then
};

struct GoState : GoSituation {
  KeyHistory boards;
  std::array<GoPoint, kGoMaxPoints + 1> points;  // [num_points] is the wall
  // Those of one ply ago and so on, empty before the start of the game. Written and copied only
  // where planes show them.
  std::array<GoEarlierBoard, kNumMinigoEarlierBoards> earlier;

  // Holds no board; positions come from Go::initial_state(). Leaves the large arrays alone: what is
  // in use of them is written.
  GoState() {}
  explicit GoState(int num_buckets) : boards(num_buckets) {}
  GoState(const GoState& other) : GoSituation(other), boards(other.boards) { copy_arrays(other); }
  GoState& operator=(const GoState& other) {
    GoSituation::operator=(other);
    boards = other.boards;
    if (this != &other) copy_arrays(other);
    return *this;
  }

  // Asked as [[unlikely]], so that the code of all other games stays together: without it they were
  // 3 % slower on 9x9.
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
