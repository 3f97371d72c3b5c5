#pragma once
// A Go board on which ladder readers place stones and take them back.

#include <algorithm>
#include <array>
#include <utility>

#include "games/go/board/board.h"

namespace tengen {

class LadderBoard {
 public:
  // The changes that one set() call made.
  struct Change {
    GoPoint point_before;
    uint16_t point;
    uint16_t ko_point_before;
    uint8_t num_joined = 0;
    uint8_t num_taken = 0;
    std::array<std::pair<uint16_t, uint16_t>, 4>
        joined;                     // a head, and the head of a chain merged into it
    std::array<uint16_t, 4> taken;  // heads of the captured chains
  };

  LadderBoard(const GoBoard& board, const GoState& state)
      : board_(board), state_(state), points_(state.points.data()) {}

  const GoPoint* points() const { return points_; }
  uint64_t liberties(uint16_t stone) const { return points_[points_[stone].head].liberties; }
  int num_empty_beside(uint16_t point) const {
    int count = 0;
    for (const uint16_t q : board_.neighbours(point)) count += points_[q].colour == kGoEmpty;
    return count;
  }

  // Starts a ladder from the current stones.
  void begin(uint16_t ko_point) {
    ko_point_ = ko_point;
    depth_ = num_tried_ = 0;
  }
  // Returns the point where the simple ko rule forbids the next stone, or GoState::kNoMove.
  uint16_t ko_point() const { return ko_point_; }
  // The number of stones of the ladder on the board; num_tried() also counts those taken back.
  int depth() const { return depth_; }
  int num_tried() const { return num_tried_; }
  // Whether a stone may be placed on an empty point; suicide is not allowed.
  bool may_set(uint16_t point, uint8_t colour) const {
    return point != ko_point_ && (num_empty_beside(point) > 0 ||
                                  board_.kind(points_, point, colour) == GoMoveKind::kNormal);
  }

  // Places a stone. Precondition: may_set().
  Change set(uint16_t point, uint8_t colour) {
    if (points_ != own_points_.data()) {
      std::copy_n(state_.points.data(), board_.num_points() + 1, own_points_.data());
      points_ = own_points_.data();
    }
    ++depth_;
    ++num_tried_;
    GoPoint* points = own_points_.data();
    Change change;
    change.point_before = points[point];
    change.point = point;
    change.ko_point_before = ko_point_;
    const uint16_t head = board_.place(points, point, colour, [&](uint16_t kept, uint16_t former) {
      change.joined[change.num_joined++] = {kept, former};
    });
    ko_point_ = GoState::kNoMove;
    bool takes = false;
    for (const uint16_t q : board_.neighbours(point)) takes |= is_taken(q, colour ^ 1);
    if (takes) take_off(point, head, change);
    return change;
  }

  // Undoes the latest set() that has not been taken back.
  void take_back(const Change& change) {
    --depth_;
    ko_point_ = change.ko_point_before;
    GoPoint* points = own_points_.data();
    const uint8_t opponent = points[change.point].colour ^ 1;
    for (size_t i = change.num_taken; i-- > 0;) {
      const uint16_t head = change.taken[i];
      GoBoard::for_each_stone(points, head, [&](uint16_t p) {
        for (const uint16_t q : board_.neighbours(p)) {
          points[points[q].head].liberties -= GoBoard::edge(p);
        }
        points[p].colour = opponent;
        points[p].head = head;
      });
      points[head].liberties = 0;
    }
    for (size_t i = change.num_joined; i-- > 0;) {
      const auto [kept, former] = change.joined[i];
      std::swap(points[kept].next, points[former].next);
      GoBoard::for_each_stone(points, former, [&](uint16_t p) { points[p].head = former; });
      points[kept].liberties -= points[former].liberties;
      points[kept].size = static_cast<uint16_t>(points[kept].size - points[former].size);
    }
    points[change.point] = change.point_before;
    for (const uint16_t q : board_.neighbours(change.point)) {
      points[points[q].head].liberties += GoBoard::edge(change.point);
    }
  }

 private:
  bool is_taken(uint16_t stone, int colour) const {
    return (points_[stone].colour == colour) & (liberties(stone) == 0);
  }
  // Removes the opposing chains without liberties that are adjacent to the new stone.
  void take_off(uint16_t point, uint16_t head, Change& change) {
    GoPoint* points = own_points_.data();
    int num_captured = 0;
    for (const uint16_t q : board_.neighbours(point)) {
      if (!is_taken(q, points[point].colour ^ 1)) continue;
      change.taken[change.num_taken++] = points[q].head;
      ko_point_ = q;
      board_.lift(points, points[q].head, [&](uint16_t) { ++num_captured; });
    }
    if (num_captured != 1 || points[head].size != 1 || (points[head].liberties & 0xfff) != 1) {
      ko_point_ = GoState::kNoMove;
    }
  }

  const GoBoard& board_;
  const GoState& state_;
  const GoPoint* points_;  // points to the position's points until a stone is placed
  uint16_t ko_point_ = GoState::kNoMove;
  int depth_ = 0;
  int num_tried_ = 0;
  std::array<GoPoint, kGoMaxPoints + 1> own_points_;
};

}  // namespace tengen
