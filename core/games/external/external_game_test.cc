#include "games/external/external_game.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/testing.h"
#include "games/testing.h"
#include "games/tictactoe/tictactoe.h"
#include "search/search.h"
#include "search/uct.h"

using namespace tengen;

namespace {

// Tic-tac-toe from outside. Counts what it is asked.
class TicTacToeSource : public StateSource {
 public:
  TicTacToeSource() {
    rules_ = {"outside", 9, 3, 3, 3, 9, PolicyLayout::kCells, 8, {}, {}};
    for (int symmetry = 0; symmetry < 8; ++symmetry) {
      std::vector<uint32_t> origin(27);
      for (uint32_t action = 0; action < 9; ++action) {
        const int image = game_.transform_action(static_cast<int>(action), symmetry);
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
    facts.planes.resize(27);
    game_.encode(state, 0, facts.planes.data());
    return facts;
  }

  TicTacToe game_;
  ExternalRules rules_;
};

void check_known_moves() {
  const auto source = std::make_shared<TicTacToeSource>();
  const ExternalGame game(source);
  auto state = game.initial_state();
  auto other = game.initial_state();
  TENGEN_CHECK(!game.is_known(state, 4));
  const int before = source->num_calls;
  game.resolve(std::vector<ExternalGame::Move>{{state, 4}, {state, 0}, {other, 4}});
  TENGEN_CHECK(source->num_calls == before + 1);
  TENGEN_CHECK(game.is_known(state, 4) && game.is_known(state, 0) && !game.is_known(other, 0));
  game.apply(state, 4);
  game.apply(other, 4);
  TENGEN_CHECK(source->num_calls == before + 1);
  TENGEN_CHECK(game.key(state) == game.key(other) && game.ply(state) == 1);
  TENGEN_CHECK(game.to_string(state) == game.to_string(other));
  // The sibling is forgotten, and its number comes up again.
  TENGEN_CHECK(source->states.size() == 4);
  game.apply(state, 0);
  TENGEN_CHECK(source->states.size() == 4);
}

void check_errors() {
  const auto source = std::make_shared<TicTacToeSource>();
  const ExternalGame game(source);
  auto state = game.initial_state();
  const auto throws = [&](auto&& f) {
    try {
      f();
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  TENGEN_CHECK(throws([&] { game.apply(state, 9); }));
  source->is_broken = true;
  for (int i = 0; i < 3; ++i) TENGEN_CHECK(throws([&] { game.apply(state, 4); }));
  source->is_broken = false;
  game.apply(state, 4);  // under the number that was taken in vain
  TENGEN_CHECK(source->states.size() == 2 && source->states.count(1) == 1);
  auto seen = game.state_after(std::vector<uint16_t>{4});
  TENGEN_CHECK(throws([&] { game.apply(seen, 0); }));
}

void check_state_after() {
  const auto source = std::make_shared<TicTacToeSource>();
  const ExternalGame game(source);
  const std::vector<uint16_t> moves = {4, 0, 8};
  auto state = game.initial_state();
  for (const uint16_t move : moves) game.apply(state, move);
  const int before = source->num_calls;
  const size_t num_states = source->states.size();
  for (int i = 0; i < 2; ++i) {
    const auto seen = game.state_after(moves);
    TENGEN_CHECK(game.ply(seen) == 3 && game.key(seen) == game.key(state));
  }
  TENGEN_CHECK(source->num_calls == before + 1);
  TENGEN_CHECK(game.ply(game.state_after({})) == 0);
  TENGEN_CHECK(source->states.size() == num_states);  // nothing of it is kept by the source
}

// A chain far longer than the stack is deep would break a recursive end.
void check_long_chain() {
  const auto ids = std::make_shared<PositionIds>();
  auto first = std::make_shared<ExternalPosition>(ids, ids->take());
  ExternalPosition* last = first.get();
  for (int i = 0; i < 1'000'000; ++i) {
    last->children.resize(2);
    last->children[1] = std::make_shared<ExternalPosition>(ids, ids->take());
    last = last->children[1].get();
  }
  first.reset();
  std::set<int32_t> free;
  for (int i = 0; i < 1'000'001; ++i) free.insert(ids->take());
  TENGEN_CHECK(free.size() == 1'000'001 && *free.begin() == 1 && *free.rbegin() == 1'000'001);
}

template <Game G>
SearchResult search_of(const G& game, int num_simulations) {
  Search<G> search(game, SearchSettings());
  SearchRequest request;
  request.num_simulations = num_simulations;
  search.begin(game.initial_state(), request);
  const std::vector<float> logits = {0.f, 1.f, 2.f, 1.f, 3.f, 0.f, 2.f, 0.f, 1.f};
  while (search.advance()) {
    TENGEN_CHECK(search.is_waiting());
    if (search.at_unknown_move()) continue;
    search.accept(logits.data(), nullptr, 0.25f);
  }
  SearchResult result;
  search.finish(result);
  return result;
}

void check_search() {
  const ExternalGame outside(std::make_shared<TicTacToeSource>());
  const TicTacToe native;
  const SearchResult a = search_of(outside, 300);
  const SearchResult b = search_of(native, 300);
  TENGEN_CHECK(a.best_action == b.best_action);
  for (size_t i = 0; i < 9; ++i) {
    TENGEN_CHECK(a.actions[i].visits == b.actions[i].visits);
    TENGEN_CHECK(a.actions[i].value_to_play == b.actions[i].value_to_play);
  }
  for (uint64_t index = 0; index < 5; ++index) {
    const Rng rng(1, 0, index, 0, Purpose::kRollout);
    TENGEN_CHECK(Uct(outside, 50).choose(outside.initial_state(), rng) ==
                 Uct(native, 50).choose(native.initial_state(), rng));
  }
}

}  // namespace

int main() {
  const ExternalGame game(std::make_shared<TicTacToeSource>());
  for (uint64_t index = 0; index < 200; ++index) check_random_game(game, index);
  check_known_moves();
  check_errors();
  check_state_after();
  check_long_chain();
  check_search();
}
