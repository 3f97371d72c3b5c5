#pragma once
// A game as far as it was played, to go on with after a restart. It stops where the next search
// begins without a tree, so that whoever goes on plays what the interrupted process would have.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "records/game_record.h"
#include "selfplay/ply_note.h"

namespace tengen {

struct UnfinishedGame {
  GameRecord record;           // at least one ply, no outcome
  std::vector<PlyNote> notes;  // one a ply
  // Of the next search, beside the usual ones: minigo's.
  uint32_t num_extra_simulations = 0;
};

std::string encode(const UnfinishedGame& game);
// Throws Error for bytes that are damaged or of another version.
UnfinishedGame decode_unfinished_game(std::string_view bytes);

}  // namespace tengen
