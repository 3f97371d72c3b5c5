#include "games/go/board/board.h"

#include <algorithm>
#include <utility>

namespace tengen {
namespace {

constexpr uint64_t kStoneTable = 7;  // hash tables of stones, one per colour: 7 and 8

}  // namespace

GoBoard::GoBoard(int height, int width) : width_(width), num_points_(height * width) {
  for (int point = 0; point < num_points_; ++point) {
    const int row = point / width;
    const int column = point % width;
    all_.add(point);
    if (column == 0) first_column_.add(point);
    if (column == width - 1) last_column_.add(point);
    const auto index = static_cast<size_t>(point);
    const int wall = num_points_;
    const int beside[4] = {row > 0 ? point - width : wall, column > 0 ? point - 1 : wall,
                           column < width - 1 ? point + 1 : wall,
                           row < height - 1 ? point + width : wall};
    std::copy_n(beside, 4, neighbours_[index].begin());
    for (size_t colour = 0; colour < 2; ++colour) {
      stone_keys_[colour][index] = zobrist_key(kStoneTable + colour, index);
    }
  }
}

void GoBoard::clear(GoState& state) const {
  const auto wall = static_cast<uint16_t>(num_points_);
  state.num_points = wall;
  std::fill_n(state.points.data(), num_points_, GoPoint{0, wall, 0, 0, kGoEmpty, 0});
  state.points[wall] = {0, wall, wall, 0, kGoWall, 0};
}

void GoBoard::set_stone(GoState& state, int point, uint8_t colour) const {
  GoPoint* points = state.points.data();
  const Neighbours& beside = neighbours(point);
  const uint8_t opponent = colour ^ 1;
  state.stones[colour].add(point);
  state.key ^= stone_keys_[colour][static_cast<size_t>(point)];
  const uint16_t head = place(points, point, colour, [](uint16_t, uint16_t) {});
  int num_captured = 0;
  for (const uint16_t q : beside) {
    if (points[q].colour == opponent && points[points[q].head].liberties == 0) {
      num_captured += take_off(state, q);
      state.ko_point = q;
    }
  }
  if (num_captured != 1 || points[head].size != 1 || (points[head].liberties & 0xfff) != 1) {
    state.ko_point = GoSituation::kNoMove;
    if (points[head].liberties == 0) take_off(state, head);
  }
}

// Merges the chains with heads `a` and `b` by relabelling the smaller; returns the new head.
uint16_t GoBoard::join(GoPoint* points, uint16_t a, uint16_t b) {
  if (points[a].size < points[b].size) std::swap(a, b);
  for_each_stone(points, b, [&](uint16_t stone) { points[stone].head = a; });
  std::swap(points[a].next, points[b].next);
  points[a].liberties += points[b].liberties;
  points[a].size = static_cast<uint16_t>(points[a].size + points[b].size);
  return a;
}

// Removes the chain of `stone`. Returns the chain's number of stones.
int GoBoard::take_off(GoState& state, uint16_t stone) const {
  const uint8_t colour = state.points[stone].colour;
  int num_stones = 0;
  lift(state.points.data(), stone, [&](uint16_t p) {
    ++num_stones;
    state.stones[colour].remove(p);
    state.vacated[colour].add(p);
    state.key ^= stone_keys_[colour][p];
  });
  return num_stones;
}

GoMoveKind GoBoard::kind(const GoPoint* points, int point, uint8_t colour) const {
  bool has_friend = false;
  for (const uint16_t q : neighbours(point)) {
    const uint8_t there = points[q].colour;
    if (there == kGoEmpty) return GoMoveKind::kNormal;
    if (there == kGoWall) continue;
    // The move is normal if a friendly chain has a liberty other than this point, or if an opposing
    // chain has none and is captured.
    if (in_atari(points[points[q].head].liberties) != (there == colour)) return GoMoveKind::kNormal;
    has_friend |= there == colour;
  }
  return has_friend ? GoMoveKind::kSuicide : GoMoveKind::kImpossible;
}

uint64_t GoBoard::key_after(const GoState& state, int point, uint8_t colour,
                            GoMoveKind kind) const {
  const GoPoint* points = state.points.data();
  const bool is_suicide = kind == GoMoveKind::kSuicide;
  // A suicide removes friendly chains, any other move the opposing chains without another liberty.
  const uint8_t leaving = is_suicide ? colour : colour ^ 1;
  uint64_t key = state.key.lo;
  if (!is_suicide) key ^= stone_keys_[colour][static_cast<size_t>(point)].lo;
  uint16_t seen[4];
  int num_seen = 0;
  for (const uint16_t q : neighbours(point)) {
    const uint16_t head = points[q].head;
    if (points[q].colour != leaving || !in_atari(points[head].liberties)) continue;
    if (std::find(seen, seen + num_seen, head) != seen + num_seen) continue;
    seen[num_seen++] = head;
    key ^= chain_key(state, head);
  }
  return key;
}

uint64_t GoBoard::chain_key(const GoState& state, uint16_t stone) const {
  const auto& keys = stone_keys_[state.points[stone].colour];
  uint64_t key = 0;
  for_each_stone(state.points.data(), stone, [&](uint16_t p) { key ^= keys[p].lo; });
  return key;
}

uint16_t GoBoard::find_liberty(const GoPoint* points, uint16_t stone, int other) const {
  const auto wall = static_cast<uint16_t>(num_points_);
  for (;;) {
    uint16_t found = wall;
    for (const uint16_t q : neighbours(stone)) {
      found = (points[q].colour == kGoEmpty) & (q != other) ? q : found;
    }
    if (found != wall) return found;
    stone = points[stone].next;
  }
}

uint64_t GoBoard::sum_without(const GoPoint* points, uint16_t head, uint64_t sum,
                              uint16_t liberty) const {
  for (const uint16_t q : neighbours(liberty)) sum -= points[q].head == head ? edge(liberty) : 0;
  return sum;
}

GoLiberties GoBoard::few_liberties(const GoPoint* points, uint16_t head) const {
  const uint64_t sum = points[head].liberties;
  if (in_atari(sum)) return {1, last_liberty(sum)};
  const uint16_t first = find_liberty(points, head, num_points_);
  const uint64_t rest = sum_without(points, head, sum, first);
  if (!in_atari(rest)) return {3, first};
  return {2, first, last_liberty(rest)};
}

int GoBoard::num_liberties(const GoState& state, uint16_t head) const {
  const GoPoint* points = state.points.data();
  const uint64_t sum = points[head].liberties;
  const auto n = static_cast<int>(sum & 0xfff);
  if (n > max_counts(3, points[head].size)) return 4;
  if (points[head].size < 3) return n;
  const GoLiberties few = few_liberties(points, head);
  if (few.count < 3) return few.count;
  const uint16_t second = find_liberty(points, head, few.first);
  const uint64_t rest = sum_without(points, head, sum, few.first);
  return in_atari(sum_without(points, head, rest, second)) ? 3 : 4;
}

}  // namespace tengen
