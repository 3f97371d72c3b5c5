#include "games/external/external_game.h"

#include <set>

#include "base/error.h"
#include "base/testing.h"
#include "games/external/testing.h"
#include "games/testing.h"

using namespace tengen;

namespace {

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
  // The sibling is freed, and its id is reused.
  TENGEN_CHECK(source->states.size() == 4);
  game.apply(state, 0);
  TENGEN_CHECK(source->states.size() == 4);
}

void check_errors() {
  const auto source = std::make_shared<TicTacToeSource>();
  const ExternalGame game(source);
  auto state = game.initial_state();
  TENGEN_CHECK(throws([&] { game.apply(state, 9); }));
  source->is_broken = true;
  for (int i = 0; i < 3; ++i) TENGEN_CHECK(throws([&] { game.apply(state, 4); }));
  source->is_broken = false;
  game.apply(state, 4);  // uses the ID that the failed call had allocated
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
  TENGEN_CHECK(source->states.size() == num_states);  // the source does not store this position
}

// Destroys a chain so long that a recursive destructor would overflow the stack.
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

}  // namespace

int main() {
  const ExternalGame game(std::make_shared<TicTacToeSource>());
  for (uint64_t index = 0; index < 200; ++index) check_random_game(game, index);
  check_known_moves();
  check_errors();
  check_state_after();
  check_long_chain();
  return 0;
}
