#pragma once
// Ladders: chains that are captured by a sequence of ataris.
//
// The attacker plays one of the chain's two liberties, which puts the chain in atari. Its owner
// plays the last liberty, or captures an adjacent attacking chain that is in atari.
// With three liberties the chain has then escaped, with one it is caught, and with two the attacker
// continues. A chain is caught if the attacker always has a move that leaves the owner without a
// saving reply.
//
// - Suicide and moves that the simple ko rule forbids are not tried, whatever the ko rule of the
//   game; superko is ignored. A ladder may therefore work only while the opponent has no ko threat.
// - The chain counts as escaped if the ladder reaches as many stones as the board has points, or
//   kMaxLadderStones tried stones in total.
// - Only the ladders on the current board are found; KataGo also shows those on the two previous
//   boards.
// Source: KataGo's network inputs (lightvector/KataGo). Differs from KataGo: leaving a ko is not in
// itself an escape, and the limits differ.

#include "games/go/board/board.h"

namespace tengen {

inline constexpr int kMaxLadderStones = 1000;

struct GoLadders {
  // The stones of both sides' caught chains: chains with one liberty that are caught even if their
  // owner moves first, and chains with two liberties that are caught if the opponent moves first.
  PointSet laddered;
  // The points where the side to move can start a ladder that works.
  PointSet working_moves;
};

// Thread-safe and stateless; does not allocate.
GoLadders ladders_of(const GoBoard& board, const GoState& state);

}  // namespace tengen
