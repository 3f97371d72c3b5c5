#include "records/game_columns.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace tengen {
namespace {

void append_game(const GameRecord& game, GameColumns* out) {
  out->game_index.push_back(game.game_index);
  out->outcome.push_back(static_cast<uint8_t>(game.outcome));
  out->model.push_back(game.model);
  out->num_variant_bytes.push_back(static_cast<uint8_t>(game.variant.size()));
  out->variant.insert(out->variant.end(), game.variant.begin(), game.variant.end());
  out->num_opening_plies.push_back(game.num_opening_plies);
  out->num_plies.push_back(static_cast<uint16_t>(game.plies.size()));
  out->num_switches.push_back(static_cast<uint16_t>(game.switches.size()));
  for (const ModelSwitch& one : game.switches) {
    out->switch_ply.push_back(one.ply);
    out->switch_model.push_back(one.model);
  }
  out->opening.insert(out->opening.end(), game.opening.begin(), game.opening.end());
  for (const PlyRecord& ply : game.plies) {
    out->action.push_back(ply.action);
    out->root_value.push_back(ply.root_value);
    out->policy_weight.push_back(ply.policy_weight);
    out->value_weight.push_back(ply.value_weight);
    out->num_simulations.push_back(ply.num_simulations);
    out->lead.push_back(ply.lead);
    out->num_policy_entries.push_back(static_cast<uint16_t>(ply.policy.size()));
    for (const auto& [action, mass] : ply.policy) {
      out->policy_action.push_back(action);
      out->policy_mass.push_back(mass);
    }
  }
}

}  // namespace

GameColumns merge_games(const std::vector<std::string_view>& frames, uint32_t generation) {
  std::vector<GameRecord> games;
  games.reserve(frames.size());
  for (const std::string_view frame : frames) {
    games.push_back(decode(frame));
    if (games.back().generation != generation) {
      throw Error("generation (" + std::to_string(games.back().generation) + ") of game " +
                  std::to_string(games.back().game_index) + " must be " +
                  std::to_string(generation) + " as its journal; the journal is misplaced");
    }
  }
  std::stable_sort(games.begin(), games.end(), [](const GameRecord& a, const GameRecord& b) {
    return a.game_index < b.game_index;
  });
  GameColumns columns;
  for (size_t i = 0; i < games.size(); ++i) {
    if (i > 0 && games[i].game_index == games[i - 1].game_index) continue;
    append_game(games[i], &columns);
  }
  return columns;
}

}  // namespace tengen
