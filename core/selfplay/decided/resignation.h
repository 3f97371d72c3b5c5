#pragma once
// Counts how often a resignation would have been wrong. Replays finished games; if a player would
// have resigned, the outcome shows whether that was right. Source: Silver et al. 2017 (AlphaGo
// Zero), Methods, "Self-play": a share of the games is played to completion.

#include <cstdint>
#include <string>
#include <vector>

#include "games/game.h"
#include "records/game_rows.h"
#include "selfplay/decided/decided.h"
#include "selfplay/ply_note.h"
#include "selfplay/settings.h"

namespace tengen {

struct ResignationCheck {
  uint32_t num_checked = 0;  // completed games in which a player would have resigned
  uint32_t num_false = 0;    // number of checked games that this player did not lose
};

// Checks `games`. Reads the columns of outcomes, variants, moves and root values. Throws Error if
// their lengths differ, or a move is illegal.
template <Game G>
ResignationCheck check_resignation(const G& game, const SelfplaySettings& settings,
                                   const SegmentView& games) {
  check_game_columns(games);
  ResignationCheck check;
  std::vector<PlyNote> notes;
  size_t variant = 0, opening = 0, ply = 0;
  for (size_t i = 0; i < games.outcome.size(); ++i) {
    const auto name = games.variant.subspan(variant, games.num_variant_bytes[i]);
    variant += name.size();
    auto state = initial_state_of(game, std::string(name.begin(), name.end()));
    play_moves(game, state, games.opening.subspan(opening, games.num_opening_plies[i]));
    opening += games.num_opening_plies[i];
    notes.clear();
    Outcome resigned = Outcome::kOngoing;
    for (int k = 0; k < games.num_plies[i]; ++k, ++ply) {
      const float value = games.root_value[ply];
      notes.push_back({game.to_play(state) == 0 ? value : -value});
      play_moves(game, state, games.action.subspan(ply, 1));
      if (resigned == Outcome::kOngoing && game.outcome(state) == Outcome::kOngoing) {
        resigned = resigned_outcome(settings, notes);
      }
    }
    if (resigned == Outcome::kOngoing || game.outcome(state) == Outcome::kOngoing) continue;
    check.num_checked += 1;
    check.num_false += static_cast<Outcome>(games.outcome[i]) != resigned;
  }
  return check;
}

}  // namespace tengen
