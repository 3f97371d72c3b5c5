#pragma once
// Ladders: chains that are caught by atari after atari.
//
// The attacker plays one of the two liberties of the chain, which leaves it in atari. Its owner
// plays its last liberty, or takes a chain of the attacker's that lies beside it and is in atari.
// Three liberties are then an escape, one is none, and with two the attacker goes on. The chain is
// caught if the attacker has a move at every step that no move of the owner's answers.
//
// - Suicide is not tried. Nor is a stone that the simple ko rule forbids, whatever the ko rule of
//   the game: superko is ignored inside the reading. So a ladder may work only while the other
//   side has no threat for a ko.
// - A ladder counts as an escape beyond as many stones as the board has points, and beyond
//   kMaxLadderStones that were tried in it altogether.
// - Ladders are those of the board as it stands; KataGo also shows those of the two boards before,
//   which are not kept here.
// Source: what KataGo (lightvector/KataGo) shows its nets. Differs from it in that a ladder that
// leaves a ko is no escape by itself, and in the limits.

#include "games/go/board/board.h"

namespace tengen {

inline constexpr int kMaxLadderStones = 1000;

struct GoLadders {
  // The stones of both sides' chains that are caught: those with one liberty though the owner moves
  // first, those with two if the opponent does.
  PointSet laddered;
  // Where the side to move begins a ladder that catches a chain of the opponent's with two
  // liberties.
  PointSet working_moves;
};

// Threads: keeps nothing between calls, and allocates nothing.
GoLadders ladders_of(const GoBoard& board, const GoState& state);

}  // namespace tengen
