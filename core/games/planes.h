#pragma once
// The observation planes of the native games, in one place. A plane is [height, width] float32;
// "own" is the side to move.
//
//   plane  tictactoe        connect4                  gomoku
//   0      on the board     on the board              on the board
//   1      own stones       own stones                own stones
//   2      opponent stones  opponent stones           opponent stones
//   3                       ones if first is to move  the last move
//   4                                                 ones if first is to move
//
// The player to move matters for who runs out of good moves (connect4) and whose attack has the
// tempo (gomoku). A plane shows this player, because a convolution cannot count stones.
//
//   plane  go
//   0-2    as above
//   3-5    stones of chains with one, two, three liberties
//   6      points where only the ko rule forbids a stone
//   7-11   the last move, the one before it and so on; all ones for a pass
//   12     pass-alive area of the side to move: pass_alive_areas() in games/go/area/area.h
//   13     pass-alive area of the opponent
//   14     komi / 20 from the view of the side to move: negated for Black
//   15     ones under the simple ko rule
//   16     ones under situational superko
//   17     ones if suicide is allowed
//   18     stones caught in a ladder, see games/go/ladders/ladder.h
//   19     points where the side to move can start a working ladder
// Source: KataGo's network inputs (lightvector/KataGo).
//
//   plane  go, names with /planes=minigo
//   0-2    as above
//   3-8    own and opponent stones one ply ago, then two, then three plies ago. A pass is a ply.
//          Zeros before the start of the game
//   9      ones if Black is to move
//   10-12  stones of chains with one, two, three or more liberties
//   13     points where a stone of the side to move is legal and captures stones
// Source: MLPerf training v2.1, minigo: the input features "mlperf07" are planes 1 to 13.
// These games also use the benchmark's scoring (games/go/rules/rules.h).
//
//   plane  go, names with /planes=katago
//   0-6    as those of go
//   7-11   the last move, the one before it and so on; zeros for a pass
//   12-14  stones caught in a ladder now, one ply ago and two plies ago, or a copy of the previous
//          plane if the game has no such ply; games/go/ladders/katago_ladder.h
//   15     points where the side to move can start a working ladder
//   16-17  own and opponent area of the current board: katago_area_of() in games/go/area/area.h
//   18-22  ones if the last move was a pass; the one before it and so on
//   23     komi / 20 from the view of the side to move: negated for Black
//   24     ones under a superko rule
//   25     0.5 under positional superko, -0.5 under situational superko
//   26     ones if suicide is allowed
//   27     ones if a pass ends the game
//   28     the distance of komi from one that allows draws: komi_wave() in games/go/encode.cc
// Source: KataGo (lightvector/KataGo), version 7 of its input features, those for area scoring
// without tax or button. Planes 0 to 17 vary by point, the others are constant on the board.

#include <algorithm>

namespace tengen {

inline constexpr int kOnBoardPlane = 0;
inline constexpr int kOwnPlane = 1;
inline constexpr int kOpponentPlane = 2;

inline constexpr int kGoLibertyPlane = 3;
inline constexpr int kNumGoLibertyPlanes = 3;
inline constexpr int kGoBannedPlane = 6;
inline constexpr int kGoLastMovePlane = 7;
inline constexpr int kGoPassAlivePlane = 12;
inline constexpr int kGoKomiPlane = 14;
inline constexpr float kGoKomiScale = 20.0f;
inline constexpr int kGoSimpleKoPlane = 15;
inline constexpr int kGoSituationalPlane = 16;
inline constexpr int kGoSuicidePlane = 17;
inline constexpr int kGoLadderedPlane = 18;
inline constexpr int kGoLadderMovePlane = 19;
inline constexpr int kNumGoPlanes = 20;

inline constexpr int kMinigoEarlierPlane = 3;
inline constexpr int kNumMinigoEarlierBoards = 3;
inline constexpr int kMinigoBlackPlane = 9;
inline constexpr int kMinigoLibertyPlane = 10;
inline constexpr int kMinigoCapturePlane = 13;
inline constexpr int kNumMinigoPlanes = 14;

inline constexpr int kKatagoLadderedPlane = 12;
inline constexpr int kNumKatagoLadderedPlanes = 3;
inline constexpr int kKatagoLadderMovePlane = 15;
inline constexpr int kKatagoAreaPlane = 16;
inline constexpr int kKatagoPassPlane = 18;
inline constexpr int kKatagoKomiPlane = 23;
inline constexpr int kKatagoSuperkoPlane = 24;
inline constexpr int kKatagoSuperkoKindPlane = 25;
inline constexpr int kKatagoSuicidePlane = 26;
inline constexpr int kKatagoPassEndsPlane = 27;
inline constexpr int kKatagoKomiWavePlane = 28;
inline constexpr int kNumKatagoPlanes = 29;

// Fills the plane with index `plane`; each plane has `num_cells` cells.
inline void fill_plane(float* planes, int plane, int num_cells, float value) {
  std::fill_n(planes + plane * num_cells, num_cells, value);
}

}  // namespace tengen
