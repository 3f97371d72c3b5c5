#pragma once
// Ladders as in KataGo's inputs. Differences from games/go/ladders/ladder.h:
//
// - a chain has escaped if its owner, to move, finds a simple ko that the attacker has left. This
//   does not apply to the owner's first move or to a ko that is already on the board;
// - a chain whose two liberties are both ko points is caught if its owner gains nothing by closing
//   them;
// - a ladder fails if it tries kMaxKatagoLadderStones stones, and works if it is 1.5 times as deep
//   as the board has points.
// Source: KataGo (lightvector/KataGo). Differs from KataGo if a stone at the last liberty captures
// and the owner can also capture elsewhere: in some of these positions KataGo calls the chain safe
// because of another chain's liberties, depending on the order of stones. This affects 9 of 37,498
// positions of random games.

#include "games/go/ladders/ladder.h"

namespace tengen {

inline constexpr int kMaxKatagoLadderStones = 25000;

// Thread-safe and stateless; does not allocate.
GoLadders katago_ladders_of(const GoBoard& board, const GoState& state);

// The stones that are caught by a ladder on an earlier board.
PointSet katago_laddered(const GoBoard& board, const GoEarlierBoard& earlier);

}  // namespace tengen
