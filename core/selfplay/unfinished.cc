#include "selfplay/unfinished.h"

#include <cmath>

#include "base/error.h"
#include "records/little_endian.h"

namespace tengen {
namespace {

// In place of the number of notes: the root comes first, then their number. No game is so long.
constexpr uint16_t kHasRoot = 0xffff;

}  // namespace

// The root if there is one, the notes, their number before them, and the record behind them.
std::string encode(const UnfinishedGame& game) {
  check(game.notes.size() < kHasRoot, "notes", game.notes.size(),
        "must be fewer than 65535; end the game earlier");
  std::string bytes;
  ByteWriter out(&bytes);
  if (game.root) {
    out.u16(kHasRoot);
    out.u32(game.root->visits);
    out.f32(game.root->value_sum);
  }
  out.u16(static_cast<uint16_t>(game.notes.size()));
  for (const PlyNote& note : game.notes) {
    out.f32(note.value_to_first);
    out.f32(note.network_value_to_first);
    out.f32(note.policy_surprise);
  }
  return bytes + encode_unfinished(game.record);
}

UnfinishedGame decode_unfinished_game(std::string_view bytes) {
  ByteReader in(bytes, "unfinished game");
  UnfinishedGame game;
  uint16_t num_notes = in.u16();
  if (num_notes == kHasRoot) {
    game.root.emplace();
    game.root->visits = in.u32();
    game.root->value_sum = in.f32();
    check(std::abs(game.root->value_sum) <= static_cast<float>(game.root->visits) + 1.0f,
          "unfinished game", game.root->value_sum,
          "must be the sum of as many values in [-1, 1] as visits and one; the bytes are damaged");
    num_notes = in.u16();
    check(num_notes < kHasRoot, "unfinished game", num_notes,
          "has two roots; the bytes are damaged");
  }
  game.notes.resize(num_notes);
  for (PlyNote& note : game.notes) {
    note.value_to_first = in.f32();
    note.network_value_to_first = in.f32();
    note.policy_surprise = in.f32();
  }
  game.record = decode_unfinished(bytes.substr(bytes.size() - in.num_left()));
  check(game.notes.size() == game.record.plies.size() && !game.notes.empty(), "unfinished game",
        std::to_string(game.notes.size()) + " notes",
        "must have one for each ply; the bytes are damaged");
  return game;
}

}  // namespace tengen
