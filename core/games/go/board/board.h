#pragma once
// Stones on a Go board: chains and their liberties, updated incrementally.
//
// A chain stores a sum of codes over its empty neighbours, each counted once for every adjacent
// stone. The code of point p is 1 + p * 2^12 + p^2 * 2^32, so one number holds the count (n), the
// sum of positions (s) and the sum of squares (q), and placing or removing a stone takes one
// addition per neighbour. A chain is in atari, which means that all its liberties are the same
// point, if and only if n * q = s * s (Cauchy-Schwarz). No part overflows: n < 4 * 361 < 2^12, s <
// 2^20, q < 2^32. Source: the pseudo-liberties of Lew's libego, and the atari test that the
// computer-go mailing list derived from them.

#include <array>
#include <cstdint>
#include <type_traits>

#include "games/go/board/state.h"

namespace tengen {

// The effect of placing a stone on a point, ignoring the ko rule.
enum class GoMoveKind : uint8_t { kImpossible, kNormal, kSuicide };

// The liberties of a chain: one or two points, or a count of 3 for more, with only `first` set.
struct GoLiberties {
  int count = 0;
  uint16_t first = 0;
  uint16_t second = 0;
};

// A Go board of a fixed size; immutable. Points are row * width + column, row 0 at the top.
class GoBoard {
 public:
  using Neighbours = std::array<uint16_t, 4>;

  GoBoard(int height, int width);

  int num_points() const { return num_points_; }
  const Neighbours& neighbours(int point) const {
    return neighbours_[static_cast<size_t>(
        point)];  // for a neighbour beyond the edge, num_points(), the index of the wall
  }
  PointSet empty_points(const GoSituation& state) const {
    return all_ - (state.stones[0] | state.stones[1]);
  }
  // The points adjacent to any point of `set`; may include points of `set`.
  PointSet beside(const PointSet& set) const {
    return with_num_words([&](auto n) { return beside<n>(set); });
  }
  // The points of `set` and the points reachable from them through points of `open`.
  PointSet reached(const PointSet& set, const PointSet& open) const {
    return with_num_words([&](auto n) { return reached<n>(set, open); });
  }

  // Removes all stones.
  void clear(GoState& state) const;
  // Places a stone on an empty point, removes the opposing chains without liberties, then its own
  // chain if that has none, and sets ko_point. Precondition: kind() is not kImpossible.
  void set_stone(GoState& state, int point, uint8_t colour) const;

  // Precondition: the point is empty.
  GoMoveKind kind(const GoState& state, int point, uint8_t colour) const {
    return kind(state.points.data(), point, colour);
  }
  GoMoveKind kind(const GoPoint* points, int point, uint8_t colour) const;
  // The low word of GoState::key after set_stone().
  uint64_t key_after(const GoState& state, int point, uint8_t colour, GoMoveKind kind) const;

  // The number of liberties of the chain with this head, capped at 4.
  int num_liberties(const GoState& state, uint16_t head) const;

  // The functions below are also used by ladder readers, which have their own array of points.

  // The maximum count in a chain's sum with `num_liberties` liberties. Each liberty is counted once
  // per adjacent stone, and two adjacent stones share no adjacent point.
  static constexpr int max_counts(int num_liberties, int num_stones) {
    return num_stones > 2 ? 4 * num_liberties : num_liberties;
  }
  // The liberties of the chain with this head.
  GoLiberties few_liberties(const GoPoint* points, uint16_t head) const;
  // The code of a point in a chain's sum.
  static constexpr uint64_t edge(uint64_t point) {
    return 1 + (point << 12) + (point * point << 32);
  }
  // Whether all codes in the sum are those of one point. Precondition: the sum has at least one.
  static bool in_atari(uint64_t liberties) {
    const uint64_t n = liberties & 0xfff;
    const uint64_t s = liberties >> 12 & 0xfffff;
    return n * (liberties >> 32) == s * s;
  }
  // The only point in the sum. Precondition: in_atari().
  static uint16_t last_liberty(uint64_t liberties) {
    const auto n = static_cast<uint32_t>(liberties & 0xfff);
    return static_cast<uint16_t>(static_cast<uint32_t>(liberties >> 12 & 0xfffff) / n);
  }
  // Places a stone on an empty point and merges it with the adjacent friendly chains, but captures
  // nothing; returns the head of its chain. Calls joined(head, former head) for each merged chain.
  template <class F>
  uint16_t place(GoPoint* points, int point, uint8_t colour, F&& joined) const {
    const Neighbours& beside = neighbours(point);
    const uint64_t own_edge = edge(static_cast<uint64_t>(point));
    uint64_t liberties = 0;
    for (const uint16_t q : beside) {
      points[points[q].head].liberties -= own_edge;
      liberties += points[q].colour == kGoEmpty ? edge(q) : 0;
    }
    auto head = static_cast<uint16_t>(point);
    points[point] = {liberties, head, head, 1, colour, 0};
    for (const uint16_t q : beside) {
      if (points[q].colour != colour || points[q].head == head) continue;
      const uint16_t other = points[q].head;
      const uint16_t kept = join(points, head, other);
      joined(kept, kept == head ? other : head);
      head = kept;
    }
    return head;
  }
  // Removes the chain of `stone` and calls f(p) for each of its stones. The links of the ring stay.
  template <class F>
  void lift(GoPoint* points, uint16_t stone, F&& f) const {
    for_each_stone(points, stone, [&](uint16_t p) {
      points[p].colour = kGoEmpty;
      points[p].head = static_cast<uint16_t>(num_points_);
      // Also updates the head of the removed chain, whose liberties no longer matter.
      for (const uint16_t q : neighbours(p)) points[points[q].head].liberties += edge(p);
      f(p);
    });
  }
  // Calls f(stone) for every stone of a chain, starting from `stone`. f may remove the stone.
  template <class F>
  static void for_each_stone(const GoPoint* points, uint16_t stone, F&& f) {
    uint16_t current = stone;
    do {
      const uint16_t next = points[current].next;
      f(current);
      current = next;
    } while (current != stone);
  }

 private:
  // Calls f(n) with the number of words for this board's points as a compile-time constant.
  template <class F>
  PointSet with_num_words(F&& f) const {
    if (num_points_ <= 64) return f(std::integral_constant<size_t, 1>());
    if (num_points_ <= 128) return f(std::integral_constant<size_t, 2>());
    if (num_points_ <= 192) return f(std::integral_constant<size_t, 3>());
    return f(std::integral_constant<size_t, PointSet::kNumWords>());
  }
  template <size_t kNumWords>
  PointSet beside(const PointSet& set) const {
    PointSet result;
    const auto step = static_cast<unsigned>(width_);
    uint64_t right = 0, below = 0;  // carries into the next word
    for (size_t i = 0; i < kNumWords; ++i) {
      const uint64_t next = i + 1 < kNumWords ? set.words[i + 1] : 0;
      const uint64_t next_left = i + 1 < kNumWords ? next & ~first_column_.words[i + 1] : 0;
      const uint64_t on = set.words[i] & ~last_column_.words[i];
      const uint64_t back = set.words[i] & ~first_column_.words[i];
      const uint64_t found = on << 1 | right | back >> 1 | next_left << 63 | set.words[i] << step |
                             below | set.words[i] >> step | next << (64 - step);
      result.words[i] = found & all_.words[i];
      right = on >> 63;
      below = set.words[i] >> (64 - step);
    }
    return result;
  }
  template <size_t kNumWords>
  PointSet reached(PointSet set, const PointSet& open) const {
    uint64_t added;
    do {
      const PointSet next = beside<kNumWords>(set);
      added = 0;
      for (size_t i = 0; i < kNumWords; ++i) {
        const uint64_t more = next.words[i] & open.words[i] & ~set.words[i];
        set.words[i] |= more;
        added |= more;
      }
    } while (added != 0);
    return set;
  }

  // A liberty of the stone's chain other than `other`. Precondition: there is one.
  uint16_t find_liberty(const GoPoint* points, uint16_t stone, int other) const;
  // The chain's `sum` without the codes of `liberty`.
  uint64_t sum_without(const GoPoint* points, uint16_t head, uint64_t sum, uint16_t liberty) const;
  static uint16_t join(GoPoint* points, uint16_t a, uint16_t b);
  int take_off(GoState& state, uint16_t stone) const;
  uint64_t chain_key(const GoState& state, uint16_t stone) const;

  int width_;
  int num_points_;
  PointSet all_, first_column_, last_column_;
  std::array<Neighbours, kGoMaxPoints> neighbours_{};
  std::array<std::array<Key128, kGoMaxPoints>, 2> stone_keys_{};
};

}  // namespace tengen
