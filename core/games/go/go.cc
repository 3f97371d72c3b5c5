#include "games/go/go.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "games/go/rules/handicap.h"
#include "games/text.h"

namespace tengen {
namespace {

constexpr uint64_t kRulesTable = 9;
constexpr uint64_t kBannedTable = 10;

// Returns the part of a key that covers the rules shown in the planes.
Key128 rules_key(const GoRules& rules) {
  uint64_t word = static_cast<uint64_t>(rules.komi_half_points + (1 << 12));
  word = word << 8 | static_cast<uint64_t>(rules.height);
  word = word << 8 | static_cast<uint64_t>(rules.width);
  word = word << 8 | static_cast<uint64_t>(rules.ko);
  return zobrist_key(kRulesTable, word << 1 | static_cast<uint64_t>(rules.may_suicide));
}

}  // namespace

Go::Go(const GoRules& rules)
    : rules_(rules), layouts_(std::make_shared<GoLayouts>(rules.height, rules.width)) {}

GoState Go::initial_state(const std::string& variant) const {
  const GoRules rules = parse_go_name(variant);
  if (rules.height > rules_.height || rules.width > rules_.width ||
      rules.max_plies > rules_.max_plies) {
    throw Error("variant (" + variant + ") must fit " + name() +
                ", with no larger board and no more plies; choose a smaller one");
  }
  if (rules.planes != rules_.planes) {
    throw Error("variant (" + variant + ") must have the planes of " + name() +
                "; end its name in the same way");
  }
  return initial_state(rules);
}

GoState Go::initial_state(const GoRules& rules) const {
  const int num_points = rules.height * rules.width;
  State state(static_cast<int>(std::bit_ceil(static_cast<unsigned>(num_points))));
  state.rules = rules;
  state.layout = &layouts_->get(rules.height, rules.width);
  state.last_moves.fill(GoState::kNoMove);
  if (state.shows_earlier_boards()) state.earlier.fill({});
  const GoBoard& board = state.layout->board();
  board.clear(state);
  const auto stones = handicap_points(rules.height, rules.width, rules.handicap);
  for (int i = 0; i < rules.handicap; ++i) {
    board.set_stone(state, stones[static_cast<size_t>(i)], kGoBlack);
  }
  if (rules.handicap > 0) state.to_play = kGoWhite;
  state.boards.add(situation_key(state, state.key.lo, state.to_play));
  return state;
}

Outcome Go::outcome(const State& state) const {
  if (!is_finished(state)) return Outcome::kOngoing;
  if (state.is_repeated) return Outcome::kDraw;
  const int score = score_half_points(state);
  return score > 0 ? Outcome::kFirstWins : score < 0 ? Outcome::kSecondWins : Outcome::kDraw;
}

bool Go::is_settled(const State& state) const {
  if (is_finished(state)) return false;
  const GoAreas alive = pass_alive(state);
  return alive[kGoBlack].count() + alive[kGoWhite].count() == state.num_points;
}

void Go::owners(const State& state, int8_t* cells) const {
  std::fill_n(cells, rules_.height * rules_.width, int8_t{0});
  const GoAreas owned = final_area(state);
  const auto write = [&](const PointSet& points, int8_t owner) {
    for_each_point(points, [&](int point) { cells[state.layout->action_of(point)] = owner; });
  };
  write(owned[kGoBlack], 1);
  write(owned[kGoWhite], -1);
}

void Go::pass_alive_cells(const State& state, uint8_t* cells) const {
  std::fill_n(cells, rules_.height * rules_.width, uint8_t{0});
  const GoAreas alive = pass_alive(state);
  for_each_point(alive[kGoBlack] | alive[kGoWhite],
                 [&](int point) { cells[state.layout->action_of(point)] = 1; });
}

GoMoveKind Go::kind_of(const State& state, int point) const {
  const GoMoveKind kind = state.layout->board().kind(state, point, state.to_play);
  return kind == GoMoveKind::kSuicide && !state.rules.may_suicide ? GoMoveKind::kImpossible : kind;
}

bool Go::is_banned(const State& state, int point, GoMoveKind kind) const {
  if (state.rules.ko == GoKo::kSimple) return point == state.ko_point;
  // A suicide removes stones and adds none, so it can recreate an earlier board at any point.
  if (kind == GoMoveKind::kNormal && !state.vacated[state.to_play].has(point)) return false;
  const uint64_t stones = state.layout->board().key_after(state, point, state.to_play, kind);
  return state.boards.contains(situation_key(state, stones, state.to_play ^ 1));
}

PointSet Go::banned_points(const State& state, const PointSet& hemmed) const {
  PointSet banned;
  if (is_finished(state)) return banned;
  if (state.rules.ko == GoKo::kSimple) {
    if (state.ko_point != GoState::kNoMove) banned.add(state.ko_point);
    return banned;
  }
  const PointSet empty = state.layout->board().empty_points(state);
  PointSet asked = empty & state.vacated[state.to_play];
  if (state.rules.may_suicide) asked = asked | hemmed;
  for_each_point(asked, [&](int point) {
    const GoMoveKind kind = kind_of(state, point);
    if (kind != GoMoveKind::kImpossible && is_banned(state, point, kind)) banned.add(point);
  });
  return banned;
}

int Go::legal_actions(const State& state, uint16_t* actions) const {
  if (is_finished(state)) return 0;
  PointSet legal = state.layout->board().empty_points(state);
  const PointSet hemmed = hemmed_points(state);
  for_each_point(hemmed, [&](int point) {
    if (kind_of(state, point) == GoMoveKind::kImpossible) legal.remove(point);
  });
  legal = legal - banned_points(state, hemmed);
  int count = list_set_bits(legal.words.data(), state.num_points, actions);
  if (!state.layout->fills_frame()) {
    for (int i = 0; i < count; ++i) actions[i] = state.layout->action_of(actions[i]);
  }
  actions[count++] = state.layout->action_of(state.num_points);
  return count;
}

bool Go::is_legal(const State& state, int action) const {
  if (action < 0 || action >= num_actions() || is_finished(state)) return false;
  const uint16_t point = state.layout->point_of(action);
  if (point == state.num_points) return true;
  if (point == GoLayout::kOffBoard || state.points[point].colour != kGoEmpty) return false;
  const GoMoveKind kind = kind_of(state, point);
  return kind != GoMoveKind::kImpossible && !is_banned(state, point, kind);
}

void Go::apply(State& state, int action) const {
  const uint16_t point = state.layout->point_of(action);
  const bool is_pass = point == state.num_points;
  if (state.shows_earlier_boards()) [[unlikely]] {
    std::copy_backward(state.earlier.begin(), state.earlier.end() - 1, state.earlier.end());
    state.earlier[0] = {state.stones, state.key, state.ko_point};
  }
  if (is_pass) {
    ++state.num_passes;
    state.ko_point = GoState::kNoMove;
  } else {
    state.num_passes = 0;
    state.layout->board().set_stone(state, point, state.to_play);
  }
  state.to_play ^= 1;
  ++state.ply;
  std::copy_backward(state.last_moves.begin(), state.last_moves.end() - 1, state.last_moves.end());
  state.last_moves[0] = point;
  const uint64_t situation = situation_key(state, state.key.lo, state.to_play);
  if (state.rules.ko == GoKo::kSimple) {
    if (is_pass) state.boards.clear();
    state.is_repeated = state.boards.contains(situation);
  }
  state.boards.add(situation);
}

Key128 Go::key(const State& state) const {
  uint64_t moves = state.to_play;
  Key128 key = state.key ^ rules_key(state.rules);
  if (state.shows_earlier_boards()) [[unlikely]] {
    for (const GoEarlierBoard& board : state.earlier) key = combine(key, 0) ^ board.key;
    // Includes the end of the game, because a finished game shows no banned points or captures.
    moves |= uint64_t{is_finished(state)} << 1;
  }
  if (state.rules.planes != GoPlanes::kMinigo) {
    for (const uint16_t move : state.last_moves) moves = moves << 9 | (move & 0x1ff);
  }
  if (state.rules.planes == GoPlanes::kKatago) [[unlikely]] {
    // Includes the ko points, because the ladders on a board depend on them.
    uint64_t kos = state.ko_point;
    for (size_t i = 0; i + 1 < kNumKatagoLadderedPlanes; ++i) {
      kos = kos << 16 | state.earlier[i].ko_point;
    }
    key = combine(key, kos);
  }
  key = combine(key, moves);
  for_each_point(banned_points(state, hemmed_points(state)), [&](int point) {
    key ^= zobrist_key(kBannedTable, static_cast<uint64_t>(point));
  });
  return key;
}

std::string Go::to_string(const State& state) const {
  std::string cells;
  for (int point = 0; point < state.num_points; ++point) {
    cells += stone_text(state.stones[kGoBlack].has(point), state.stones[kGoWhite].has(point));
  }
  return board_text(cells, state.layout->width(), kGoColumns) +
         status_text(to_play(state), outcome(state));
}

}  // namespace tengen
