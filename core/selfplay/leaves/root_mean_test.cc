#include "selfplay/leaves/root_mean.h"

#include <cmath>
#include <map>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "search/testing.h"
#include "selfplay/match/match.h"
#include "selfplay/session/session.h"
#include "selfplay/session/shared_session.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

SearchSettings mean_settings() {
  SearchSettings settings;
  settings.root_symmetries = true;
  return settings;
}

// Serves a port with a network that has no symmetry. Returns the number of rows.
template <class P>
int drive_rows(P& port) {
  int total = 0;
  for (int n = port.next(); n > 0; n = port.next()) {
    total += n;
    for (int row = 0; row < n; ++row) evaluate_row(port.buffers(), row);
    port.done();
  }
  return total;
}

// Returns the mean over all symmetries, computed directly: priors of legal moves, and the value.
template <Game G>
std::pair<std::map<int, float>, float> mean_of(const G& game, const std::vector<int>& moves) {
  auto state = game.initial_state();
  for (const int move : moves) game.apply(state, move);
  BatchBuffers one(1, {size_t(game.num_planes()), size_t(game.height()), size_t(game.width())},
                   size_t(game.num_actions()));
  std::vector<double> sum(size_t(game.num_actions()));
  double value = 0.0;
  for (int symmetry = 0; symmetry < game.num_symmetries(); ++symmetry) {
    game.encode(state, symmetry, one.planes_row(0));
    evaluate_row(one, 0);
    double total = 0.0;
    for (const float logit : one.policy) total += std::exp(double(logit));
    const uint16_t* images = game.images(state, symmetry);
    for (size_t a = 0; a < sum.size(); ++a)
      sum[a] += std::exp(double(one.policy[images[a]])) / total;
    value += one.value[0];
  }
  std::vector<uint16_t> legal(sum.size());
  const int n = game.legal_actions(state, legal.data());
  double total = 0.0;
  for (int i = 0; i < n; ++i) total += sum[legal[size_t(i)]];
  std::map<int, float> priors;
  for (int i = 0; i < n; ++i) priors[legal[size_t(i)]] = float(sum[legal[size_t(i)]] / total);
  return {priors, float(value / game.num_symmetries())};
}

template <Game G>
void check_priors(const G& game, const std::vector<int>& moves, const SearchResult& result) {
  const auto priors = mean_of(game, moves).first;
  TENGEN_CHECK(result.actions.size() == priors.size());
  for (const ActionResult& action : result.actions) {
    TENGEN_CHECK(std::abs(action.prior - priors.at(action.action)) < 1e-5f);
  }
}

// The root gets the mean over its symmetries, at one evaluation per symmetry. Nothing else changes.
template <Game G>
void check_fresh(const G& game, const std::vector<int>& moves) {
  GameSession<G> plain(game, SearchSettings(), 0);
  plain.begin(moves, request_of(0), "");
  TENGEN_CHECK(drive_rows(plain) == 1);
  GameSession<G> session(game, mean_settings(), 0);
  session.begin(moves, request_of(0), "");
  TENGEN_CHECK(drive_rows(session) == game.num_symmetries());
  check_priors(game, moves, session.result());
  const float value = mean_of(game, moves).second;
  TENGEN_CHECK(std::abs(session.result().network_value_to_play - value) < 1e-5f);
  bool differs = false;
  for (size_t i = 0; i < plain.result().actions.size(); ++i) {
    differs |=
        std::abs(plain.result().actions[i].prior - session.result().actions[i].prior) > 1e-3f;
  }
  TENGEN_CHECK(differs);
  session.begin(moves, request_of(50), "");
  TENGEN_CHECK(drive_rows(session) >= game.num_symmetries());
  TENGEN_CHECK(session.result().num_simulations == 50);
}

// The root of a reused tree gets new priors and keeps its visits, with one thread and with several.
template <Game G>
void check_kept(const G& game) {
  GameSession<G> session(game, mean_settings(), 0);
  session.begin({}, request_of(120), "");
  drive_rows(session);
  const int move = session.result().best_action;
  session.begin({move}, request_of(0), "", true);
  TENGEN_CHECK(drive_rows(session) == game.num_symmetries());
  TENGEN_CHECK(session.result().num_simulations > 5);
  check_priors(game, {move}, session.result());

  SharedGameSession<G> shared(game, mean_settings(), 1, 1, 0);
  const auto run = [&](const std::vector<int>& moves, int num_simulations) {
    shared.begin(moves, request_of(num_simulations), "", true);
    return drive_rows(shared.port(0));
  };
  TENGEN_CHECK(run({}, 120) > 100);
  TENGEN_CHECK(run({move}, 0) == game.num_symmetries());
  TENGEN_CHECK(shared.result().num_simulations == session.result().num_simulations);
  check_priors(game, {move}, shared.result());
  session.begin({move}, request_of(200), "", true);
  drive_rows(session);
  run({move}, 200);
  for (size_t i = 0; i < session.result().actions.size(); ++i) {
    TENGEN_CHECK(shared.result().actions[i].visits == session.result().actions[i].visits);
  }
  // If the search stops before the new priors arrive, the tree's results are still available.
  shared.begin({move}, request_of(300), "", true);
  shared.stop();
  TENGEN_CHECK(drive_rows(shared.port(0)) == 0);
  TENGEN_CHECK(shared.result().num_simulations >= 200);
}

// A port with many rows requests several symmetries at once.
void check_batches() {
  const Gomoku game(9);
  SharedGameSession<Gomoku> shared(game, mean_settings(), 1, 8, 0);
  shared.begin({40}, request_of(0), "");
  TENGEN_CHECK(shared.port(0).next() == 8);
  for (int row = 0; row < 8; ++row) evaluate_row(shared.port(0).buffers(), row);
  shared.port(0).done();
  TENGEN_CHECK(shared.port(0).next() == 0);
  check_priors(game, {40}, shared.result());
}

// The number of concurrent games does not affect any search, in matches and in self-play.
void check_many_games() {
  const Connect4 game;
  SelfplaySettings settings;
  settings.search = mean_settings();
  settings.full_simulations = 12;
  settings.cheap_simulations = 4;
  settings.full_probability = 0.5f;
  settings.max_opening_plies = 3;
  Setup setup;
  setup.cache_bytes = 0;
  const std::vector<GameRecord> games = play(game, settings, setup, 20);
  check_same_games(game, settings, setup, games);
  SelfplaySettings without = settings;
  without.search.root_symmetries = false;
  TENGEN_CHECK(play(game, without, setup, 20) != games);
}

}  // namespace

int main() {
  check_fresh(Gomoku(9), {40, 41});
  check_fresh(Connect4(), {3});
  check_kept(Gomoku(9));
  check_kept(Connect4());
  check_batches();
  check_many_games();
  return 0;
}
