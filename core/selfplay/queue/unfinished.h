#pragma once
// The state of an unfinished game, to resume the game after a restart. The state ends before a
// search that starts with an empty tree, so that the resumed game equals an uninterrupted one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "records/game_record.h"
#include "selfplay/ply_note.h"

namespace tengen {

struct UnfinishedGame {
  GameRecord record;           // the plies so far, at least one; no outcome
  std::vector<PlyNote> notes;  // one per ply
  // Additional simulations of the next search (minigo).
  uint32_t num_extra_simulations = 0;
};

std::string encode(const UnfinishedGame& game);
// Decodes the result of encode(). Throws Error for damaged bytes and for an unsupported version.
UnfinishedGame decode_unfinished_game(std::string_view bytes);

}  // namespace tengen
