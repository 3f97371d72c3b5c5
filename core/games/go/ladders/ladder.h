#pragma once
// Ladders: chains that are captured by a sequence of ataris.
//
// The attacker plays one of the chain's two liberties, which puts it in atari. Its owner
// plays the last liberty, or captures an adjacent attacking chain that is in atari.
// With three liberties the chain has then escaped, with one it has not, and with two the attacker
// continues. The chain is caught if the attacker always has a move to which the owner has no
// answer.
//
// - Suicide is not tried. Nor is a stone that the simple ko rule forbids, whatever the ko rule of
// the game: superko is ignored in the reading. So a ladder may work only while the other
// side has no ko threat.
// - A ladder counts as an escape beyond as many stones as the board has points, and beyond
// kMaxLadderStones tried stones in total.
// - Ladders are those of the current board; KataGo also shows those of the two previous boards,
// which are not stored here.
// Source: KataGo's network inputs (lightvector/KataGo). Differs from it in that a ladder that
// leaves a ko is not an escape by itself, and in the limits.

#include "games/go/board/board.h"

namespace tengen {

inline constexpr int kMaxLadderStones = 1000;

struct GoLadders {
  // The stones of both sides' caught chains: chains with one liberty that are caught even if their
  // owner moves first, and chains with two that are caught if the opponent does.
  PointSet laddered;
  // The points where the side to move starts a ladder that works.
  PointSet working_moves;
};

// Thread-safe: stateless, and allocates nothing.
GoLadders ladders_of(const GoBoard& board, const GoState& state);

}  // namespace tengen
