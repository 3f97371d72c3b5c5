#include "selfplay/queue/unfinished.h"

#include "base/error.h"
#include "records/little_endian.h"
#include "search/check_request.h"

namespace tengen {
namespace {

// A marker that replaces the number of notes, because no game has so many plies. The number of
// extra simulations follows, then the number of notes. (Earlier versions used 65535, with the
// visits and value of a root.)
constexpr uint16_t kHasExtra = 0xfffe;

}  // namespace

// Encodes the extra simulations if there are any, the number of notes, the notes and the record.
std::string encode(const UnfinishedGame& game) {
  check(game.notes.size() < kHasExtra, "notes", game.notes.size(),
        "must be fewer than 65534; end the game earlier");
  std::string bytes;
  ByteWriter out(&bytes);
  if (game.num_extra_simulations > 0) {
    out.u16(kHasExtra);
    out.u32(game.num_extra_simulations);
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
  if (num_notes == kHasExtra) {
    game.num_extra_simulations = in.u32();
    check(game.num_extra_simulations > 0 && game.num_extra_simulations <= kMaxSimulations,
          "unfinished game", std::to_string(game.num_extra_simulations) + " extra simulations",
          "must have 1 to 16777216 if any; the bytes are damaged");
    num_notes = in.u16();
  }
  check(num_notes < kHasExtra, "unfinished game", std::to_string(num_notes) + " notes",
        "must have fewer than 65534; the bytes are damaged or of another version");
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
