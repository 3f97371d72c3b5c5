#pragma once
// Ownership on a Go board: by area scoring, and what is certain.

#include <array>

#include "games/go/board/board.h"

namespace tengen {

// Points by owner, Black's and White's; neutral points are in neither set.
using GoAreas = std::array<PointSet, 2>;

// Area scoring of the current board: stones, and empty points that reach stones of one side only.
GoAreas area_of(const GoBoard& board, const GoState& state);

// What a side keeps even if it always passes and the other moves as often as it likes: its
// pass-alive chains, and the regions that only they enclose and in which the other side cannot make
// a pass-alive chain, because at most one point there has no adjacent stone of theirs and two eyes
// need two.
//
// A chain is pass-alive if it belongs to a set of chains each of which has two vital regions that
// only chains of the set enclose. A region is a maximal connected set of points without a stone of
// the side; it is vital to a chain if every empty point of it is a liberty of that chain. If
// suicide is allowed, every point must be a liberty, because the other side's stones in it may be
// removed and leave it open. Source: Benson 1976, "Life in the game of Go"; suicide and the regions
// after KataGo (lightvector/KataGo).
GoAreas pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// The same in the version of the MLPerf benchmark minigo, for games with its planes; no point
// belongs to both sides. It differs in two ways:
// - Only an empty point without an adjacent stone of the side makes a region too large; the number
// of the other side's stones does not matter.
// - A chain that fails disqualifies a region only if it has a liberty there. A chain that is
// adjacent only to the other side's stones in a region leaves it to the other chains. A point that
// would belong to both sides is White's. Source: MLPerf training v2.1, minigo.
GoAreas minigo_pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// How that benchmark scores the current board: a pass-alive region belongs to its owner, with all
// stones in it; the rest is as in area_of().
GoAreas minigo_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

// Area scoring of the current board in which a side also owns what it certainly keeps, including
// dead stones of the other side in it: KataGo's input. A point that both would keep is White's.
GoAreas katago_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

}  // namespace tengen
