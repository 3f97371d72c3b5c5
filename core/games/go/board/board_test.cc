#include "games/go/board/board.h"

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "games/go/testing.h"

using namespace tengen;

namespace {

// Compares the chain of a stone and its liberties with those computed from point sets.
void check_chain(const GoBoard& board, const GoState& state, int stone) {
  PointSet one;
  one.add(stone);
  const PointSet& own = state.stones[state.points[static_cast<size_t>(stone)].colour];
  const PointSet chain = board.reached(one, own);
  const uint16_t head = state.points[static_cast<size_t>(stone)].head;
  TENGEN_CHECK(state.points[head].size == chain.count());
  for_each_point(chain,
                 [&](int p) { TENGEN_CHECK(state.points[static_cast<size_t>(p)].head == head); });
  PointSet ring;
  GoBoard::for_each_stone(state.points.data(), head, [&](uint16_t p) { ring.add(p); });
  TENGEN_CHECK(ring == chain);
  const int num_liberties = (board.beside(chain) & board.empty_points(state)).count();
  TENGEN_CHECK(board.num_liberties(state, head) == std::min(num_liberties, 4));
}

// Plays random moves. Chains stay correct, and key_after() equals the key after the move.
void check_random_moves(int height, int width, uint64_t index) {
  const GoBoard board(height, width);
  GoState state(1);
  board.clear(state);
  Rng rng(1, 0, index, 0, Purpose::kTest);
  // A state of a larger board is reused for a smaller one.
  GoState moved = go_game("go/19").initial_state();
  for (int i = 0; i < 4 * board.num_points(); ++i) {
    const auto colour = static_cast<uint8_t>(rng.below(2));
    const int point = static_cast<int>(rng.below(static_cast<uint32_t>(board.num_points())));
    if (!board.empty_points(state).has(point)) continue;
    const GoMoveKind kind = board.kind(state, point, colour);
    if (kind == GoMoveKind::kImpossible) continue;
    moved = state;
    board.set_stone(moved, point, colour);
    TENGEN_CHECK(moved.stones[colour].has(point) == (kind == GoMoveKind::kNormal));
    TENGEN_CHECK(moved.key.lo == board.key_after(state, point, colour, kind));
    state = moved;
    for_each_point(state.stones[0] | state.stones[1],
                   [&](int stone) { check_chain(board, state, stone); });
  }
}

// Compares operations on point sets with the neighbours of each point.
void check_sets(int height, int width) {
  const GoBoard board(height, width);
  Rng rng(2, 0, static_cast<uint64_t>(height * width), 0, Purpose::kTest);
  for (uint32_t thinness = 1; thinness <= 8; ++thinness) {
    PointSet set;
    PointSet open;
    PointSet beside;
    for (int point = 0; point < board.num_points(); ++point) {
      if (rng.below(8) >= thinness) open.add(point);
      if (rng.below(thinness) > 0) continue;
      set.add(point);
      for (const uint16_t q : board.neighbours(point)) {
        if (q < board.num_points()) beside.add(q);
      }
    }
    TENGEN_CHECK(board.beside(set) == beside);
    // Computes the same with a flood fill, point by point.
    PointSet reached = set;
    std::vector<int> front;
    for_each_point(set, [&](int point) { front.push_back(point); });
    while (!front.empty()) {
      const int point = front.back();
      front.pop_back();
      for (const uint16_t q : board.neighbours(point)) {
        if (q == board.num_points() || !open.has(q) || reached.has(q)) continue;
        reached.add(q);
        front.push_back(q);
      }
    }
    TENGEN_CHECK(board.reached(set, open) == reached);
  }
}

// The chain touches its three liberties twelve times, but each liberty counts once.
void check_three_liberties() {
  const Go game = go_game("go/7");
  const GoState state =
      go_position(game, "XXXXXXX X.X.X.X XXXXXXX XXXXXXX OOOOOOO ....... .......");
  const GoBoard board(7, 7);
  for_each_point(state.stones[kGoBlack], [&](int stone) { check_chain(board, state, stone); });
}

}  // namespace

int main() {
  for (uint64_t index = 0; index < 20; ++index) {
    check_random_moves(2, 2, index);
    check_random_moves(3, 5, index);
    check_random_moves(5, 5, index);
    check_random_moves(19, 2, index);
  }
  check_random_moves(9, 9, 0);
  check_random_moves(19, 19, 0);
  check_three_liberties();
  for (const int height : {2, 5, 8, 9, 11, 12, 16, 19}) {
    for (const int width : {2, 7, 8, 11, 13, 16, 19}) check_sets(height, width);
  }
  return 0;
}
