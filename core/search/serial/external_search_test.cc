// A game played outside the core gives the same searches as the native game.

#include <memory>
#include <vector>

#include "base/testing.h"
#include "games/external/external_game.h"
#include "games/external/testing.h"
#include "games/tictactoe/tictactoe.h"
#include "search/serial/search.h"
#include "search/uct/uct.h"

using namespace tengen;

namespace {

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
  check_search();
  return 0;
}
