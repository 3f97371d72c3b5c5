#include "selfplay/unfinished.h"

#include "records/little_endian.h"

namespace tengen {

// The notes, their number, and the record behind them.
std::string encode(const UnfinishedGame& game) {
  std::string bytes;
  ByteWriter out(&bytes);
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
  game.notes.resize(in.u16());
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
