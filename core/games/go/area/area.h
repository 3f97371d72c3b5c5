#pragma once
// Who owns what on a Go board: by area scoring, and for certain.

#include <array>

#include "games/go/board/board.h"

namespace tengen {

// Points by owner, Black's and White's; neither's are in neither.
using GoAreas = std::array<PointSet, 2>;

// Area scoring as the board stands: stones, and empty points that reach stones of one side only.
GoAreas area_of(const GoBoard& board, const GoState& state);

// What a side keeps though it passes for ever and the other moves as often as it likes: its
// pass-alive chains, and the regions that only they enclose and in which the other side cannot
// make a pass-alive chain, because at most one point there has no stone of theirs beside it and
// two eyes need two.
//
// A chain is pass-alive if it belongs to a set of chains each of which has two vital regions that
// only chains of the set enclose. A region is a maximal connected set of points without a stone of
// the side; it is vital to a chain if every empty point of it is a liberty of that chain. Where
// suicide is allowed every point of it must be one, as the other side's stones in it may go off and
// leave it open.
// Source: Benson 1976, "Life in the game of Go"; suicide and the regions after KataGo
// (lightvector/KataGo).
GoAreas pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// The same as the MLPerf benchmark minigo has it, for games with its planes; no point is both
// sides'. It differs in two things:
// - Only an empty point makes a region too large where no stone of the side is beside it; the other
//   side's stones may be as many as they like.
// - A chain that fails takes a region with it only where it has a liberty there. A chain that has
//   nothing but the other side's stones beside it in a region leaves it to the other chains.
// Where a point would be of both sides it is White's.
// Source: MLPerf training v2.1, minigo.
GoAreas minigo_pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide);

// How that benchmark scores a board as it stands: a pass-alive region is its owner's, with all
// stones in it; the rest is as in area_of().
GoAreas minigo_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

// Area scoring as the board stands where what a side keeps for certain is its own, dead stones of
// the other side in it too: what KataGo shows its nets. A point that both would keep is White's.
GoAreas katago_area_of(const GoBoard& board, const GoState& state, bool may_suicide);

}  // namespace tengen
