#pragma once
// Ownership on a Go board: area scoring and pass-alive areas.

#include <array>

#include "games/go/board/board.h"

namespace tengen {

// The points owned by Black and by White; neutral points are in neither set.
using GoAreas = std::array<PointSet, 2>;

// Area scoring of the current board: a side owns its stones and the empty points that only its
// stones reach.
GoAreas area_of(const GoBoard& board, const GoState& state);

// The points that each side keeps even if it always passes and the opponent moves any number of
// times: its pass-alive chains, and the regions that only these chains enclose and in which the
// opponent cannot make a pass-alive chain. At most one point of such a region has no adjacent stone
// of the side, and two eyes need two of these points.
//
// A set of chains is pass-alive if each of them has two vital regions that only chains of the set
// enclose. A region is a maximal connected set of points without a stone of the side; it is vital
// to a chain if every empty point of it is a liberty of that chain. If suicide is allowed, every
// point must be a liberty, because the opponent's stones in the region may be removed and leave
// empty points. Source: Benson 1976, "Life in the game of Go"; suicide and the regions after KataGo
// (lightvector/KataGo).
GoAreas pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// pass_alive_areas() by the rules of the MLPerf benchmark minigo, for games with minigo's planes:
// - A region is too large only if it has two or more empty points without an adjacent stone of the
//   side; the opponent's stones do not count.
// - A chain that is not pass-alive disqualifies a region only if the chain has a liberty in it, not
//   if it is adjacent only to the opponent's stones there.
// - A point that would belong to both sides is White's.
// Source: MLPerf training v2.1, minigo.
GoAreas minigo_pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// Area scoring of the current board as in minigo: a pass-alive region belongs to its owner,
// including all stones in it; the rest is as in area_of().
GoAreas minigo_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

// Area scoring of the current board as in KataGo's input: a side also owns its pass_alive_areas(),
// including the opponent's dead stones in them. A point in the areas of both sides is White's.
GoAreas katago_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

}  // namespace tengen
