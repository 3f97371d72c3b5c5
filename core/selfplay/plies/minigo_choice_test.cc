// Move choice and recording in self-play with minigo.

#include "selfplay/plies/minigo_choice.h"

#include <cmath>
#include <vector>

#include "base/testing.h"
#include "games/go/testing.h"
#include "games/tictactoe/tictactoe.h"

using namespace tengen;

namespace {

// A search result with these visits for actions from 0 on.
SearchResult result_of(const std::vector<uint32_t>& visits) {
  SearchResult result;
  uint32_t most = 0;
  float total = 0.0f;
  for (size_t i = 0; i < visits.size(); ++i) {
    result.actions.push_back({});
    result.actions.back().action = static_cast<uint16_t>(i);
    result.actions.back().visits = visits[i];
    result.actions.back().policy = static_cast<float>(visits[i]);
    total += static_cast<float>(visits[i]);
    if (result.best_action < 0 || visits[i] > most) result.best_action = static_cast<int>(i);
    most = std::max(most, visits[i]);
  }
  for (ActionResult& a : result.actions) a.policy /= total > 0.0f ? total : 1.0f;
  return result;
}

void check_pass_runs() {
  PassRuns runs(2);
  runs.add(0, true);
  TENGEN_CHECK(!runs.restricts(0) && !runs.restricts(1));
  runs.add(0, false);
  runs.add(0, true);
  TENGEN_CHECK(!runs.restricts(1));
  runs.add(0, true);
  TENGEN_CHECK(runs.restricts(1) && !runs.restricts(0));
  runs.add(0, false);  // the count stays
  TENGEN_CHECK(runs.restricts(1));
  runs.clear();
  TENGEN_CHECK(!runs.restricts(1));
  TENGEN_CHECK(PassRuns(0).restricts(0) && PassRuns(0).restricts(1));
}

// The frequencies of sampled moves match visits to the power; a pass is never sampled.
void check_draws() {
  const Go game = go_game("go/2");
  const SearchResult result = result_of({3, 0, 1, 0, 50});
  SearchSettings settings;
  settings.policy = RootPolicy::kMinigo;
  const MinigoSearch<Go> search(game, settings);
  for (const double exponent : {1.0, 2.0}) {
    int num_first = 0;
    for (uint64_t i = 0; i < 4000; ++i) {
      Rng rng(1, 0, i, 0, Purpose::kTest);
      const int action = draw_point(game, search, result, exponent, rng);
      TENGEN_CHECK(action == 0 || action == 2);
      num_first += action == 0;
    }
    const double share = exponent == 1.0 ? 0.75 : 0.9;
    TENGEN_CHECK(std::abs(num_first / 4000.0 - share) < 0.03);
  }
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  TENGEN_CHECK(draw_point(game, search, result_of({0, 0, 0, 0, 5}), 1.0, rng) == 4);
  const SearchResult none = result_of({0, 0, 0, 0, 0});
  TENGEN_CHECK(draw_point(game, search, none, 1.0, rng) == 4);
  const MinigoSearch<Go> other(game, settings, false);
  TENGEN_CHECK(draw_point(game, other, none, 1.0, rng) == 0);  // passing is not allowed
  // Without a pass the last action is like the others.
  const TicTacToe tictactoe;
  const MinigoSearch<TicTacToe> third(tictactoe, settings);
  const SearchResult last = result_of({0, 0, 0, 0, 0, 0, 0, 0, 7});
  TENGEN_CHECK(draw_point(tictactoe, third, last, 1.0, rng) == 8);
}

// Black is alive on the left edge, and nobody else anywhere.
void check_pass_alive() {
  const Go game = go_game("go/5");
  const GoState state = go_position(game, ".XO.. XXO.. .XO.. XXO.. .XO..");
  PassAlivePoints<Go> alive(game);
  alive.read(game, state, false);
  for (int action = 0; action <= 25; ++action) TENGEN_CHECK(!alive.has(action));
  alive.read(game, state, true);
  for (int action = 0; action <= 25; ++action) {
    TENGEN_CHECK(alive.has(action) == (action < 25 && action % 5 < 2));
  }

  SearchSettings settings;
  settings.policy = RootPolicy::kMinigo;
  MinigoSearch<Go> search(game, settings);
  search.begin(state, {});
  const auto best = [&](const std::vector<uint32_t>& visits) {
    return best_allowed(game, search, result_of(visits), alive);
  };
  TENGEN_CHECK(best({9, 0, 0, 4, 0, 0, 0, 0, 0, 5}) == 9);
  TENGEN_CHECK(best({9, 3}) == 25);  // nothing else is left

  // Targets exclude these points; if nothing is left, everything is on the pass.
  SearchResult some = result_of({9, 0, 0, 4, 4});
  make_target(game, alive, false, 0.5, some);
  TENGEN_CHECK(some.actions[0].policy == 0.0f && some.actions[3].policy == 0.5f);
  std::vector<uint32_t> visits(26, 0);
  visits[0] = 9;
  SearchResult none = result_of(visits);
  make_target(game, alive, false, 0.5, none);
  TENGEN_CHECK(none.actions[25].policy == 1.0f && none.actions[0].policy == 0.0f);
}

void check_targets() {
  const TicTacToe game;
  PassAlivePoints<TicTacToe> none(game);
  none.read(game, game.initial_state(), true);
  SearchResult result = result_of({16, 4, 0});
  make_target(game, none, true, 0.5, result);
  TENGEN_CHECK(std::abs(result.actions[0].policy - 4.0f / 6.0f) < 1e-6f);
  TENGEN_CHECK(std::abs(result.actions[1].policy - 2.0f / 6.0f) < 1e-6f);
  TENGEN_CHECK(result.actions[2].policy == 0.0f);
  // A target without pruning has all visits.
  result = result_of({16, 4, 0});
  result.actions[1].policy = 0.0f;
  take_visits(result);
  make_target(game, none, false, 1.0, result);
  TENGEN_CHECK(result.actions[0].policy == 0.8f && result.actions[1].policy == 0.2f);
  // The prior replaces the target if nothing was visited; the row then has no weight.
  result = result_of({0, 0, 0});
  result.actions[1].policy = 1.0f;
  make_target(game, none, false, 1.0, result);
  TENGEN_CHECK(result.actions[0].policy == 1.0f && result.actions[1].policy == 0.0f);
}

void check_resignation() {
  SelfplaySettings settings;
  settings.resign_from = 0.9f;
  float least = 0.0f;
  float most = -1.0f;
  for (uint64_t i = 0; i < 1000; ++i) {
    const float value = resignation_value(settings, Rng(1, 0, i, 0, Purpose::kResignation));
    TENGEN_CHECK(value >= -1.0f && value < -0.9f);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  TENGEN_CHECK(least < -0.99f && most > -0.91f);
  settings.resign_from = 1.0f;
  TENGEN_CHECK(resignation_value(settings, Rng(1, 0, 0, 0, Purpose::kResignation)) == -1.0f);
}

}  // namespace

int main() {
  check_pass_runs();
  check_draws();
  check_pass_alive();
  check_targets();
  check_resignation();
  return 0;
}
