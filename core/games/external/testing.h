#pragma once
// An external game for the native tests.

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing.h"
#include "games/external/state_source.h"
#include "games/tictactoe/tictactoe.h"

namespace tengen {

// Tic-tac-toe as an external game. Counts calls to expand() and replay().
class TicTacToeSource : public StateSource {
 public:
  TicTacToeSource() {
    rules_ = {"outside", 9, 3, 3, 3, 9, PolicyLayout::kCells, 8, {}, {}};
    for (int symmetry = 0; symmetry < 8; ++symmetry) {
      std::vector<uint32_t> origin(27);
      for (uint32_t action = 0; action < 9; ++action) {
        const int image = game_.images(game_.initial_state(), symmetry)[action];
        rules_.action_image.push_back(static_cast<uint16_t>(image));
        for (size_t entry = 0; entry < 27; entry += 9) {
          origin[entry + static_cast<size_t>(image)] = static_cast<uint32_t>(entry) + action;
        }
      }
      rules_.plane_origin.insert(rules_.plane_origin.end(), origin.begin(), origin.end());
    }
  }

  const ExternalRules& rules() const override { return rules_; }
  void expand(std::span<const ExternalMove> moves, std::span<PositionFacts> facts) override {
    ++num_calls;
    for (size_t i = 0; i < moves.size(); ++i) {
      if (is_broken) throw Error("source (broken) must work; mend it");
      TicTacToe::State state = states.at(moves[i].parent);
      TENGEN_CHECK(game_.is_legal(state, moves[i].action));
      game_.apply(state, moves[i].action);
      states[moves[i].child] = state;
      facts[i] = facts_of(state);
    }
  }
  PositionFacts replay(std::span<const uint16_t> actions, int32_t id) override {
    ++num_calls;
    TicTacToe::State state;
    for (const uint16_t action : actions) game_.apply(state, action);
    if (id >= 0) states[id] = state;
    return facts_of(state);
  }
  Outcome playout(int32_t id, Rng& rng) override {
    TicTacToe::State state = states.at(id);
    uint16_t legal[9];
    while (game_.outcome(state) == Outcome::kOngoing) {
      const auto n = static_cast<uint32_t>(game_.legal_actions(state, legal));
      game_.apply(state, legal[rng.below(n)]);
    }
    return game_.outcome(state);
  }
  std::string to_string(int32_t id) override { return game_.to_string(states.at(id)); }

  std::map<int32_t, TicTacToe::State> states;
  int num_calls = 0;
  bool is_broken = false;

 private:
  PositionFacts facts_of(const TicTacToe::State& state) const {
    PositionFacts facts;
    facts.to_play = static_cast<uint8_t>(game_.to_play(state));
    facts.outcome = game_.outcome(state);
    facts.legal.resize(9);
    facts.legal.resize(static_cast<size_t>(game_.legal_actions(state, facts.legal.data())));
    facts.considered.resize(9);
    facts.decisive = game_.decisive_actions(state, facts.considered.data());
    facts.considered.resize(static_cast<size_t>(facts.decisive.count));
    facts.planes.resize(27);
    game_.encode(state, 0, facts.planes.data());
    return facts;
  }

  TicTacToe game_;
  ExternalRules rules_;
};

}  // namespace tengen
