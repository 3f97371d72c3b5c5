#include "games/go/ladders/ladder.h"

#include "games/go/ladders/ladder_board.h"

namespace tengen {
namespace {

// Reads the ladders of one position. A stone is not placed if its outcome follows from the chains
// that it would join, which is the usual case. Loops over the four neighbours have as few branches
// as possible, because a neighbour's content is unpredictable.
class LadderReader {
 public:
  LadderReader(const GoBoard& board, const GoState& state)
      : board_(board), state_(state), trial_(board, state) {}

  GoLadders all() {
    GoLadders found;
    std::array<uint16_t, kGoMaxPoints + 1> heads;
    size_t num_heads = 0;
    for_each_point(state_.stones[kGoBlack] | state_.stones[kGoWhite], [&](int stone) {
      const GoPoint& point = points()[stone];
      heads[num_heads] = static_cast<uint16_t>(stone);
      num_heads += (point.head == stone) & (static_cast<int>(point.liberties & 0xfff) <=
                                            GoBoard::max_counts(2, point.size));
    });
    for (size_t i = 0; i < num_heads; ++i) {
      if (!is_caught(heads[i], found.working_moves)) continue;
      GoBoard::for_each_stone(state_.points.data(), heads[i],
                              [&](uint16_t p) { found.laddered.add(p); });
    }
    return found;
  }

 private:
  static constexpr uint16_t kNowhere = GoState::kNoMove;
  using Heads = std::array<uint16_t, 4>;

  // Whether the chain is caught; adds the catching moves if the attacker is to move.
  bool is_caught(uint16_t head, PointSet& working_moves) {
    const GoLiberties liberties = board_.few_liberties(points(), head);
    if (liberties.count > 2) return false;
    target_ = head;
    owner_ = state_.points[head].colour;
    const bool owner_begins = liberties.count == 1;
    const bool side_to_move_begins = owner_begins == (owner_ == state_.to_play);
    trial_.begin(side_to_move_begins ? state_.ko_point : kNowhere);
    const auto [count, first, second] = liberties;
    if (owner_begins) {
      const GoLiberties after = liberties_after(first, kNowhere);
      return !escapes(first, after, !takes_beside(first), is_beside_atari());
    }
    if (!side_to_move_begins) return catches(liberties, kNowhere);
    const GoLiberties after[2] = {liberties_after(second, first), liberties_after(first, second)};
    if (after[0].count > 2 && after[1].count > 2) return false;
    const bool has_atari = is_beside_atari();
    const bool first_works = works(first, second, after[0], has_atari);
    trial_.begin(state_.ko_point);
    const bool second_works = works(second, first, after[1], has_atari);
    if (first_works) working_moves.add(first);
    if (second_works) working_moves.add(second);
    return first_works || second_works;
  }

  // Whether the attacker, to move, catches the target, which has these two liberties. If `latest`
  // is a point, only chains adjacent to it can be both adjacent to the target and in atari.
  bool catches(const GoLiberties& liberties, uint16_t latest) {
    const auto [count, first, second] = liberties;
    const GoLiberties after_first = liberties_after(second, first);
    const GoLiberties after_second = liberties_after(first, second);
    if (after_first.count > 2 && after_second.count > 2) return false;
    const bool has_atari = latest == kNowhere ? is_beside_atari() : takes_beside(latest);
    // Tries first the move after which the target would have fewer liberties.
    if (after_second.count < after_first.count) {
      return works(second, first, after_second, has_atari) ||
             works(first, second, after_first, has_atari);
    }
    return works(first, second, after_first, has_atari) ||
           works(second, first, after_second, has_atari);
  }

  // Whether the attacker's stone at `point`, one of the target's two liberties, catches the target.
  // `last` is the other one, and `after` the target's liberties if the owner then plays `last`.
  bool works(uint16_t point, uint16_t last, const GoLiberties& after, bool has_atari) {
    if (after.count > 2 || point == trial_.ko_point()) return false;
    bool is_exposed = false;
    if (trial_.num_empty_beside(point) < 2) {
      Heads heads;
      const uint64_t own = joined_sum(point, attacker(), heads);
      if (own == 0 && !trial_.may_set(point, attacker())) return false;
      is_exposed = GoBoard::in_atari(own);
    }
    const bool is_exact = !is_exposed && !takes_beside(last);
    has_atari |= is_exposed;
    if (after.count < 2 && is_exact && !has_atari) return true;
    if (is_too_far()) return false;
    const LadderBoard::Change change = trial_.set(point, attacker());
    const bool is_caught = !escapes(last, after, is_exact, has_atari);
    trial_.take_back(change);
    return is_caught;
  }

  // Whether the owner, to move, saves the target, whose last liberty is `last`. `after` are the
  // target's liberties after a stone at `last`, exact if that stone captures nothing (`is_exact`).
  // Without `has_atari` the owner cannot capture elsewhere.
  bool escapes(uint16_t last, const GoLiberties& after, bool is_exact, bool has_atari) {
    if (after.count > 2 && last != trial_.ko_point()) return true;
    if (has_atari && saves_by_taking(last)) return true;
    if (after.count < 2 && is_exact) return false;
    if (!trial_.may_set(last, owner_)) return false;
    if (is_too_far()) return true;
    const bool is_calm = !has_atari && is_exact && !joins_others(last);
    const LadderBoard::Change change = trial_.set(last, owner_);
    const bool is_saved = is_open(is_exact ? after : target_liberties(), is_calm ? last : kNowhere);
    trial_.take_back(change);
    return is_saved;
  }

  // Whether the owner saves the target by capturing a chain with a move other than at `last`.
  bool saves_by_taking(uint16_t last) {
    PointSet tried;
    tried.add(last);
    if (trial_.ko_point() != kNowhere) tried.add(trial_.ko_point());
    uint16_t stone = target_;
    do {
      const auto& beside = board_.neighbours(stone);
      for (unsigned found = beside_in_atari(stone); found != 0; found &= found - 1) {
        const uint16_t other = beside[static_cast<size_t>(std::countr_zero(found))];
        const uint16_t point = GoBoard::last_liberty(trial_.liberties(other));
        if (tried.has(point)) continue;
        tried.add(point);
        if (surely_saves(other, point, last) || is_too_far()) return true;
        const LadderBoard::Change change = trial_.set(point, owner_);
        const bool is_saved = is_open(target_liberties(), kNowhere);
        trial_.take_back(change);
        if (is_saved) return true;
      }
      stone = points()[stone].next;
    } while (stone != target_);
    return false;
  }

  // Whether capturing the chain of `other` at `point` certainly saves the target.
  bool surely_saves(uint16_t other, uint16_t point, uint16_t last) const {
    const uint16_t head = points()[other].head;
    if (points()[head].size == 1) {
      // The owner's stones and the edge surround the captured stone's point, so the attacker cannot
      // play there. If the attacker plays `last`, the target connects to the chain at `point`.
      return liberties_after(point, last).count > 2;
    }
    const uint16_t target_head = points()[target_].head;
    int num_gained = 0;
    GoBoard::for_each_stone(points(), head, [&](uint16_t stone) {
      bool is_gained = false;
      for (const uint16_t q : board_.neighbours(stone)) {
        is_gained |= points()[q].head == target_head;
      }
      num_gained += is_gained;
    });
    return num_gained > 1;
  }

  // Whether the target with these liberties escapes if the attacker is to move.
  bool is_open(const GoLiberties& liberties, uint16_t latest) {
    return liberties.count > 2 || (liberties.count == 2 && !catches(liberties, latest));
  }

  // The liberties of the owner's chain after its stone at `last` and an attacker's stone at
  // `filled`; these are the target's only liberties before. Ignores captures, which may add more.
  GoLiberties liberties_after(uint16_t last, uint16_t filled) const {
    const uint16_t target_head = points()[target_].head;
    std::array<uint16_t, 5> open{};
    size_t num_open = 0;
    bool joins = false;
    for (const uint16_t q : board_.neighbours(last)) {
      open[num_open] = q;
      num_open += (points()[q].colour == kGoEmpty) & (q != filled);
      joins |= (points()[q].colour == owner_) & (points()[q].head != target_head);
    }
    if (num_open > 2) return {3};
    if (!joins) return {static_cast<int>(num_open), open[0], open[1]};
    Heads heads;
    uint64_t sum = joined_sum(last, owner_, heads);
    if (filled != kNowhere) sum -= num_beside(filled, last, heads) * GoBoard::edge(filled);
    if (sum == 0) return {0};
    if (GoBoard::in_atari(sum)) return {1, GoBoard::last_liberty(sum)};
    const uint16_t first = num_open > 0 ? open[0] : liberty_of_joined(last, filled, heads);
    sum -= num_beside(first, last, heads) * GoBoard::edge(first);
    if (!GoBoard::in_atari(sum)) return {3};
    return {2, first, GoBoard::last_liberty(sum)};
  }

  // The liberty sum of the chain that a stone at `point` would form with the adjacent friendly
  // chains, ignoring captures. Writes the heads of these chains to `heads`.
  uint64_t joined_sum(uint16_t point, uint8_t colour, Heads& heads) const {
    const auto& beside = board_.neighbours(point);
    uint64_t sum = 0;
    for (size_t i = 0; i < 4; ++i) {
      const GoPoint& there = points()[beside[i]];
      const bool is_own = there.colour == colour;
      bool is_new = is_own;
      for (size_t j = 0; j < i; ++j) is_new &= there.head != heads[j];
      heads[i] = is_own ? there.head : kNowhere;
      sum += times(there.colour == kGoEmpty, GoBoard::edge(beside[i]));
      sum += times(is_new, points()[there.head].liberties);
      sum -= times(is_own, GoBoard::edge(point));
    }
    return sum;
  }
  // The number of neighbours of an empty point that are `stone` or belong to the chains `heads`.
  uint64_t num_beside(uint16_t point, uint16_t stone, const Heads& heads) const {
    uint64_t count = 0;
    for (const uint16_t q : board_.neighbours(point)) {
      const uint16_t head = points()[q].head;
      count += (q == stone) | (head == heads[0]) | (head == heads[1]) | (head == heads[2]) |
               (head == heads[3]);
    }
    return count;
  }
  // A liberty of the chains `heads` other than `last` and `filled`. Precondition: there is one.
  uint16_t liberty_of_joined(uint16_t last, uint16_t filled, const Heads& heads) const {
    for (const uint16_t head : heads) {
      if (head == kNowhere || head == points()[target_].head) continue;
      uint16_t stone = head;
      do {
        for (const uint16_t q : board_.neighbours(stone)) {
          if (points()[q].colour == kGoEmpty && q != last && q != filled) return q;
        }
        stone = points()[stone].next;
      } while (stone != head);
    }
    return kNowhere;
  }

  // Whether an owner's stone at `last` would join a chain other than the target.
  bool joins_others(uint16_t last) const {
    const uint16_t head = points()[target_].head;
    bool any = false;
    for (const uint16_t q : board_.neighbours(last)) {
      any |= (points()[q].colour == owner_) & (points()[q].head != head);
    }
    return any;
  }

  // A bit mask of the neighbours of `point` that are attacking stones in atari.
  unsigned beside_in_atari(uint16_t point) const {
    const auto& beside = board_.neighbours(point);
    unsigned found = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool is_found = (points()[beside[i]].colour == attacker()) &
                            GoBoard::in_atari(trial_.liberties(beside[i]));
      found |= static_cast<unsigned>(is_found) << i;
    }
    return found;
  }
  bool takes_beside(uint16_t point) const { return beside_in_atari(point) != 0; }
  // Whether an attacking chain beside the target is in atari.
  bool is_beside_atari() const {
    unsigned found = 0;
    GoBoard::for_each_stone(points(), target_,
                            [&](uint16_t stone) { found |= beside_in_atari(stone); });
    return found != 0;
  }

  // The target's liberties; the count is 3 if there are more than two.
  GoLiberties target_liberties() const {
    return board_.few_liberties(points(), points()[target_].head);
  }

  static uint64_t times(bool condition, uint64_t value) {
    return -static_cast<uint64_t>(condition) & value;
  }

  const GoPoint* points() const { return trial_.points(); }
  uint8_t attacker() const { return owner_ ^ 1; }
  bool is_too_far() const {
    return trial_.depth() == board_.num_points() || trial_.num_tried() == kMaxLadderStones;
  }

  const GoBoard& board_;
  const GoState& state_;
  LadderBoard trial_;
  uint16_t target_ = 0;  // a stone of the attacked chain
  uint8_t owner_ = kGoBlack;
};

}  // namespace

GoLadders ladders_of(const GoBoard& board, const GoState& state) {
  return LadderReader(board, state).all();
}

}  // namespace tengen
