#pragma once
// Ladders as KataGo shows them to its nets: games/go/ladders/ladder.h, but that
//
// - a chain has escaped where its owner, to move, finds a simple ko that the attacker has left. The
//   first move of the owner is free of that, and of the ko on the board;
// - a chain whose two liberties are both the mouths of kos, which its owner gains nothing by
//   closing, is caught;
// - a ladder that sets more than kMaxKatagoLadderStones stones does not work, and one that is
//   deeper than half as many stones again as the board has points does.
// Source: KataGo (lightvector/KataGo). Differs from it where a stone at the last liberty takes
// something and the owner can take elsewhere too: in some of these it calls the chain safe for the
// liberties of another one, by the order in which it lists stones. 9 of 37,498 positions of random
// games.

#include "games/go/ladders/ladder.h"

namespace tengen {

inline constexpr int kMaxKatagoLadderStones = 25000;

// Threads: keeps nothing between calls, and allocates nothing.
GoLadders katago_ladders_of(const GoBoard& board, const GoState& state);

// Those stones that a ladder caught on a board of before.
PointSet katago_laddered(const GoBoard& board, const GoEarlierBoard& earlier);

}  // namespace tengen
