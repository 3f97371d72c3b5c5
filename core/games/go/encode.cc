// Encodes Go positions as network inputs, for each list of planes in games/planes.h.

#include <algorithm>
#include <cmath>

#include "games/go/go.h"
#include "games/go/ladders/katago_ladder.h"
#include "games/go/ladders/ladder.h"

namespace tengen {

// Writes planes transformed by a symmetry. Does not own the memory of the planes.
class GoPlaneWriter {
 public:
  // Zeroes `num_planes` planes.
  GoPlaneWriter(const GoLayout& layout, int symmetry, int num_planes, int num_cells, float* planes)
      : layout_(layout), images_(layout.images(symmetry)), num_cells_(num_cells), planes_(planes) {
    std::fill_n(planes, num_planes * num_cells, 0.0f);
  }

  void point_on(int plane, int point) const { set(plane, point, 1.0f); }
  void points_on(int plane, const PointSet& points) const {
    for_each_point(points, [&](int point) { point_on(plane, point); });
  }
  // Sets all points of the board to `value`; entries off the board stay 0.
  void constant(int plane, float value) const {
    if (layout_.fills_frame()) return fill_plane(planes_, plane, num_cells_, value);
    const int num_points = layout_.height() * layout_.width();
    for (int point = 0; point < num_points; ++point) set(plane, point, value);
  }

 private:
  void set(int plane, int point, float value) const {
    planes_[plane * num_cells_ + images_[layout_.action_of(point)]] = value;
  }

  const GoLayout& layout_;
  const uint16_t* images_;
  int num_cells_;
  float* planes_;
};

namespace {

// Calls f(head) for every chain.
template <class F>
void for_each_chain(const GoState& state, F&& f) {
  for_each_point(state.stones[kGoBlack] | state.stones[kGoWhite], [&](int stone) {
    const auto head = static_cast<uint16_t>(stone);
    if (state.points[head].head == head) f(head);
  });
}

// Half a point of komi changes the result only if it crosses a possible score, and possible scores
// have the parity of `num_points`. Returns 0 for a komi that allows draws, and 0.5, 0 and -0.5
// after each further half point, with a period of two points. Source: KataGo (lightvector/KataGo).
float komi_wave(float komi, int num_points) {
  const float parity = num_points % 2 == 0 ? 0.0f : 1.0f;
  const float above = komi - (std::floor((komi - parity) / 2.0f) * 2.0f + parity);
  if (above < 0.5f) return above;
  return above < 1.5f ? 1.0f - above : above - 2.0f;
}

}  // namespace

void Go::encode(const State& state, int symmetry, float* planes) const {
  if (rules_.planes == GoPlanes::kMinigo) return encode_minigo(state, symmetry, planes);
  if (rules_.planes == GoPlanes::kKatago) return encode_katago(state, symmetry, planes);
  encode_own(state, symmetry, planes);
}

void Go::encode_stones(const State& state, const GoPlaneWriter& writer) const {
  const GoBoard& board = state.layout->board();
  writer.constant(kOnBoardPlane, 1.0f);
  writer.points_on(kOwnPlane, state.stones[state.to_play]);
  writer.points_on(kOpponentPlane, state.stones[state.to_play ^ 1]);
  for_each_chain(state, [&](uint16_t head) {
    const int num_liberties = board.num_liberties(state, head);
    if (num_liberties > kNumGoLibertyPlanes) return;
    GoBoard::for_each_stone(state.points.data(), head, [&](uint16_t point) {
      writer.point_on(kGoLibertyPlane + num_liberties - 1, point);
    });
  });
  writer.points_on(kGoBannedPlane, banned_points(state, hemmed_points(state)));
}

void Go::encode_own(const State& state, int symmetry, float* planes) const {
  const GoBoard& board = state.layout->board();
  const uint8_t own = state.to_play;
  const uint8_t opponent = own ^ 1;
  const GoPlaneWriter writer(*state.layout, symmetry, kNumGoPlanes, num_actions() - 1, planes);
  encode_stones(state, writer);
  for (int i = 0; i < GoState::kNumLastMoves; ++i) {
    const uint16_t move = state.last_moves[static_cast<size_t>(i)];
    if (move == state.num_points) writer.constant(kGoLastMovePlane + i, 1.0f);
    if (move < state.num_points) writer.point_on(kGoLastMovePlane + i, move);
  }
  const GoAreas alive = pass_alive(state);
  writer.points_on(kGoPassAlivePlane, alive[own]);
  writer.points_on(kGoPassAlivePlane + 1, alive[opponent]);
  const auto komi = static_cast<float>(state.rules.komi_half_points) / 2.0f;
  writer.constant(kGoKomiPlane, (own == kGoBlack ? -komi : komi) / kGoKomiScale);
  if (state.rules.ko == GoKo::kSimple) writer.constant(kGoSimpleKoPlane, 1.0f);
  if (state.rules.ko == GoKo::kSituational) writer.constant(kGoSituationalPlane, 1.0f);
  if (state.rules.may_suicide) writer.constant(kGoSuicidePlane, 1.0f);
  const GoLadders ladders = ladders_of(board, state);
  writer.points_on(kGoLadderedPlane, ladders.laddered);
  writer.points_on(kGoLadderMovePlane, ladders.working_moves);
}

void Go::encode_minigo(const State& state, int symmetry, float* planes) const {
  const GoBoard& board = state.layout->board();
  const GoPoint* points = state.points.data();
  const uint8_t own = state.to_play;
  const uint8_t opponent = own ^ 1;
  const GoPlaneWriter writer(*state.layout, symmetry, kNumMinigoPlanes, num_actions() - 1, planes);
  writer.constant(kOnBoardPlane, 1.0f);
  writer.points_on(kOwnPlane, state.stones[own]);
  writer.points_on(kOpponentPlane, state.stones[opponent]);
  for (int i = 0; i < kNumMinigoEarlierBoards; ++i) {
    const GoEarlierBoard& earlier = state.earlier[static_cast<size_t>(i)];
    writer.points_on(kMinigoEarlierPlane + 2 * i, earlier.stones[own]);
    writer.points_on(kMinigoEarlierPlane + 2 * i + 1, earlier.stones[opponent]);
  }
  if (own == kGoBlack) writer.constant(kMinigoBlackPlane, 1.0f);
  const bool is_over = is_finished(state);
  for_each_chain(state, [&](uint16_t head) {
    const GoLiberties liberties = board.few_liberties(points, head);
    GoBoard::for_each_stone(points, head, [&](uint16_t point) {
      writer.point_on(kMinigoLibertyPlane + liberties.count - 1, point);
    });
    if (points[head].colour != opponent || liberties.count != 1 || is_over) return;
    // Checks only the ko rule, because a capture is never suicide.
    if (!is_banned(state, liberties.first, GoMoveKind::kNormal)) {
      writer.point_on(kMinigoCapturePlane, liberties.first);
    }
  });
}

void Go::encode_katago(const State& state, int symmetry, float* planes) const {
  const GoBoard& board = state.layout->board();
  const uint8_t own = state.to_play;
  const GoPlaneWriter writer(*state.layout, symmetry, kNumKatagoPlanes, num_actions() - 1, planes);
  encode_stones(state, writer);
  int num_moves = 0;
  for (const uint16_t move : state.last_moves) {
    if (move == GoState::kNoMove) break;
    if (move == state.num_points) {
      writer.constant(kKatagoPassPlane + num_moves, 1.0f);
    } else {
      writer.point_on(kGoLastMovePlane + num_moves, move);
    }
    ++num_moves;
  }
  const GoLadders ladders = katago_ladders_of(board, state);
  writer.points_on(kKatagoLadderMovePlane, ladders.working_moves);
  PointSet laddered = ladders.laddered;
  for (int i = 0; i < kNumKatagoLadderedPlanes; ++i) {
    if (i > 0 && i <= num_moves) {
      laddered = katago_laddered(board, state.earlier[static_cast<size_t>(i - 1)]);
    }
    writer.points_on(kKatagoLadderedPlane + i, laddered);
  }
  const GoAreas areas = katago_area_of(board, state, state.rules.may_suicide);
  writer.points_on(kKatagoAreaPlane, areas[own]);
  writer.points_on(kKatagoAreaPlane + 1, areas[own ^ 1]);
  const auto komi = static_cast<float>(state.rules.komi_half_points) / 2.0f;
  const float most = static_cast<float>(state.num_points) + kGoKomiScale;
  const float shown = std::clamp(own == kGoBlack ? -komi : komi, -most, most);
  writer.constant(kKatagoKomiPlane, shown / kGoKomiScale);
  if (state.rules.ko != GoKo::kSimple) {
    writer.constant(kKatagoSuperkoPlane, 1.0f);
    writer.constant(kKatagoSuperkoKindPlane, state.rules.ko == GoKo::kPositional ? 0.5f : -0.5f);
  }
  if (state.rules.may_suicide) writer.constant(kKatagoSuicidePlane, 1.0f);
  if (state.num_passes > 0) writer.constant(kKatagoPassEndsPlane, 1.0f);
  writer.constant(kKatagoKomiWavePlane, komi_wave(shown, state.num_points));
}

}  // namespace tengen
