#include "games/go/ladders/katago_ladder.h"

#include <algorithm>

#include "games/go/ladders/ladder_board.h"

namespace tengen {
namespace {

// Reads the ladders of one position by playing them out.
class KatagoLadderReader {
 public:
  KatagoLadderReader(const GoBoard& board, const GoState& state)
      : board_(board), state_(state), trial_(board, state) {}

  GoLadders all() {
    GoLadders found;
    for_each_point(state_.stones[kGoBlack] | state_.stones[kGoWhite], [&](int stone) {
      const auto head = static_cast<uint16_t>(stone);
      if (state_.points[head].head != head || !is_caught(head, found.working_moves)) return;
      GoBoard::for_each_stone(state_.points.data(), head,
                              [&](uint16_t p) { found.laddered.add(p); });
    });
    return found;
  }

 private:
  static constexpr uint16_t kNowhere = GoState::kNoMove;

  // Whether the chain is caught; adds the catching moves if the chain is the opponent's.
  bool is_caught(uint16_t head, PointSet& working_moves) {
    const GoLiberties liberties = board_.few_liberties(points(), head);
    if (liberties.count > 2) return false;
    target_ = head;
    owner_ = state_.points[head].colour;
    if (liberties.count == 1) {
      trial_.begin(kNowhere);
      return owner_loses() && !gave_up();
    }
    bool any = false;
    for (const uint16_t point : {liberties.first, liberties.second}) {
      trial_.begin(state_.ko_point);
      if (!trial_.may_set(point, attacker())) continue;
      const LadderBoard::Change change = trial_.set(point, attacker());
      trial_.begin(kNowhere);
      const bool works = owner_loses() && !gave_up();
      trial_.take_back(change);
      if (works && owner_ != state_.to_play) working_moves.add(point);
      any |= works;
    }
    return any;
  }

  // Whether the target, with one or two liberties, is caught if the owner is to move.
  bool owner_loses() {
    if (gave_up()) return false;
    if (is_too_deep()) return true;
    const GoLiberties liberties = target_liberties();
    if (liberties.count > 1 || trial_.ko_point() != kNowhere) return false;
    if (trial_.num_empty_beside(liberties.first) > 2) return false;
    return !saves_by_taking(liberties.first) && !saves_at(liberties.first);
  }

  // Whether the target is caught if the attacker is to move.
  bool attacker_wins() {
    if (gave_up()) return false;
    if (is_too_deep()) return true;
    const GoLiberties liberties = target_liberties();
    if (liberties.count != 2) return liberties.count < 2;
    uint16_t likelier = liberties.first, other = liberties.second;
    int gained = trial_.num_empty_beside(likelier), other_gained = trial_.num_empty_beside(other);
    if (gained == 0 && other_gained == 0 && is_double_ko(liberties)) return true;
    if (other_gained > gained) {
      std::swap(likelier, other);
      std::swap(gained, other_gained);
    }
    // Unless the points are adjacent, a stone at one does not reduce the gain at the other.
    const bool is_apart = !are_neighbours(likelier, other);
    if (is_apart && other_gained > 2) return false;
    if (wins_at(likelier)) return true;
    return !(is_apart && gained > 2) && wins_at(other);
  }

  bool wins_at(uint16_t point) {
    if (gave_up() || !trial_.may_set(point, attacker())) return false;
    const LadderBoard::Change change = trial_.set(point, attacker());
    const bool wins = owner_loses();
    trial_.take_back(change);
    return wins;
  }
  bool saves_at(uint16_t point) {
    if (!trial_.may_set(point, owner_)) return false;
    const LadderBoard::Change change = trial_.set(point, owner_);
    const bool saves = !attacker_wins();
    trial_.take_back(change);
    return saves;
  }

  // Whether the owner saves the target by capturing a chain with a move other than at `last`.
  bool saves_by_taking(uint16_t last) {
    PointSet tried;
    tried.add(last);
    uint16_t stone = target_;
    do {
      for (const uint16_t q : board_.neighbours(stone)) {
        if (!is_taken_by_owner(q)) continue;
        const uint16_t point = GoBoard::last_liberty(trial_.liberties(q));
        if (tried.has(point)) continue;
        tried.add(point);
        if (saves_at(point)) return true;
      }
      stone = points()[stone].next;
    } while (stone != target_);
    return false;
  }

  // Whether both liberties are ko points at which the attacker may capture, while the owner gains
  // nothing by playing at either and has nothing to capture.
  bool is_double_ko(const GoLiberties& liberties) {
    for (const uint16_t point : {liberties.first, liberties.second}) {
      if (!takes_ko(point)) return false;
      const LadderBoard::Change change = trial_.set(point, owner_);
      const bool gains = board_.few_liberties(points(), points()[point].head).count > 2;
      trial_.take_back(change);
      if (gains) return false;
    }
    bool takes = false;
    GoBoard::for_each_stone(points(), target_, [&](uint16_t stone) {
      for (const uint16_t q : board_.neighbours(stone)) takes |= is_taken_by_owner(q);
    });
    return !takes;
  }
  // Whether an attacker's stone at `point` captures one stone and is surrounded by the owner's.
  bool takes_ko(uint16_t point) const {
    int num_taken = 0, num_stones = 0;
    for (const uint16_t q : board_.neighbours(point)) {
      const uint8_t colour = points()[q].colour;
      if (colour != kGoWall && colour != owner_) return false;
      if (colour != owner_ || !GoBoard::in_atari(trial_.liberties(q))) continue;
      ++num_taken;
      num_stones = points()[points()[q].head].size;
    }
    return num_taken == 1 && num_stones == 1;
  }

  bool is_taken_by_owner(uint16_t point) const {
    return points()[point].colour == attacker() && GoBoard::in_atari(trial_.liberties(point));
  }
  bool are_neighbours(uint16_t a, uint16_t b) const {
    const auto& beside = board_.neighbours(a);
    return std::find(beside.begin(), beside.end(), b) != beside.end();
  }
  // The target's liberties; the count is 3 if there are more than two.
  GoLiberties target_liberties() const {
    return board_.few_liberties(points(), points()[target_].head);
  }

  const GoPoint* points() const { return trial_.points(); }
  uint8_t attacker() const { return owner_ ^ 1; }
  bool gave_up() const { return trial_.num_tried() >= kMaxKatagoLadderStones; }
  bool is_too_deep() const { return trial_.depth() >= board_.num_points() * 3 / 2; }

  const GoBoard& board_;
  const GoState& state_;
  LadderBoard trial_;
  uint16_t target_ = 0;  // a stone of the attacked chain
  uint8_t owner_ = kGoBlack;
};

}  // namespace

GoLadders katago_ladders_of(const GoBoard& board, const GoState& state) {
  return KatagoLadderReader(board, state).all();
}

PointSet katago_laddered(const GoBoard& board, const GoEarlierBoard& earlier) {
  GoState state;
  board.clear(state);
  // Places the stones one by one. This captures none, because an incomplete chain has a liberty at
  // its missing stones.
  for (const uint8_t colour : {kGoBlack, kGoWhite}) {
    for_each_point(earlier.stones[colour],
                   [&](int point) { board.set_stone(state, point, colour); });
  }
  state.ko_point = earlier.ko_point;
  return katago_ladders_of(board, state).laddered;
}

}  // namespace tengen
