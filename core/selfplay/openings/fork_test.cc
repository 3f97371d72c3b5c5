#include "selfplay/openings/fork.h"

#include <cmath>
#include <map>
#include <set>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/go/go.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

std::vector<uint16_t> moves_of(const GameRecord& record) {
  std::vector<uint16_t> moves = record.opening;
  for (const PlyRecord& ply : record.plies) moves.push_back(ply.action);
  return moves;
}

std::vector<ForkSource> sources_of(const std::vector<GameRecord>& records) {
  std::vector<ForkSource> sources;
  for (const GameRecord& record : records) sources.push_back({record.variant, moves_of(record)});
  return sources;
}

// Compares shares, depths and numbers of choices with their expected distributions.
void check_draws() {
  SelfplaySettings settings;
  settings.early_fork_share = 0.2f;
  settings.early_fork_plies = 3.0f;
  settings.early_fork_choices = 5;
  settings.late_fork_share = 0.1f;
  settings.late_fork_choices = 40;
  const std::vector<ForkSource> sources(4, {"", std::vector<uint16_t>(50)});
  int num_early = 0;
  int num_late = 0;
  int num_zero = 0;
  double late_plies = 0.0;
  std::map<uint32_t, int> early_choices;
  std::set<uint32_t> late_choices;
  std::set<size_t> used;
  for (uint64_t i = 0; i < 20000; ++i) {
    Rng rng(1, 0, i, 0, Purpose::kTest);
    // The first random number decides the kind of the fork.
    Rng same(1, 0, i, 0, Purpose::kTest);
    const double drawn = same.uniform();
    const auto fork = draw_fork(settings, sources, rng);
    TENGEN_CHECK(fork.has_value() ==
                 (drawn < settings.early_fork_share + settings.late_fork_share));
    if (!fork) continue;
    used.insert(fork->source);
    TENGEN_CHECK(fork->num_plies < 50);
    if (drawn < settings.early_fork_share) {
      ++num_early;
      num_zero += fork->num_plies == 0;
      ++early_choices[fork->num_choices];
    } else {
      ++num_late;
      late_plies += static_cast<double>(fork->num_plies);
      late_choices.insert(fork->num_choices);
    }
  }
  TENGEN_CHECK(std::abs(num_early - 4000) < 300 && std::abs(num_late - 2000) < 220);
  // 1 - exp(-1 / 3) = 0.2835 of the early forks start at the first move.
  TENGEN_CHECK(std::abs(num_zero - 0.2835 * num_early) < 150);
  TENGEN_CHECK(std::abs(late_plies / num_late - 24.5) < 2.0);
  TENGEN_CHECK(early_choices.size() == 3 && early_choices.begin()->first == 3);
  TENGEN_CHECK(*late_choices.begin() == 3 && *late_choices.rbegin() == 40);
  TENGEN_CHECK(used.size() == 4);
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  settings.early_fork_share = 1.0f;
  TENGEN_CHECK(!draw_fork(settings, {}, rng));
  TENGEN_CHECK(!draw_fork(settings, {{"", {}}}, rng));
  const auto shortest = draw_fork(settings, {{"", {7}}}, rng);
  TENGEN_CHECK(shortest && shortest->num_plies == 0);
}

// Returns the network's value of a position under the symmetry that a search would use. It is the
// result of a search without simulations.
template <Game G>
float network_value(const G& game, const typename G::State& state) {
  SearchSettings settings;
  Search<G> search(game, settings);
  LeafServer<G> leaves(game, 1, 0, false, false);
  WorkerStats stats;
  search.begin(state, SearchRequest{});
  while (leaves.fill([&] { leaves.run(search, stats); }) > 0) {
    evaluate_row(leaves.buffers(), 0);
    leaves.answer(stats);
  }
  SearchResult result;
  search.finish(result);
  return result.network_value_to_play;
}

// Each fork has the moves of a source, followed by the best of several moves. The number of
// evaluated moves matches the sampled fork.
template <Game G>
void check_forks(const G& game, const Setup& first) {
  SelfplaySettings settings;
  settings.full_simulations = 8;
  settings.max_opening_plies = 2;
  settings.early_fork_share = 0.5f;
  settings.late_fork_share = 0.5f;
  settings.early_fork_choices = 3;
  settings.late_fork_choices = 3;
  Setup setup = first;
  setup.fork_sources = sources_of(play(game, settings, setup, 12));
  const std::vector<GameRecord> records = play(game, settings, setup, 40);
  TENGEN_CHECK(records.size() == 40);
  int num_best_of_three = 0;
  for (const GameRecord& record : records) {
    Rng rng(7, 3, record.game_index, 0, Purpose::kFork);
    const auto fork = draw_fork(settings, setup.fork_sources, rng);
    TENGEN_CHECK(fork.has_value());
    const ForkSource& source = setup.fork_sources[fork->source];
    TENGEN_CHECK(record.variant == source.variant);
    TENGEN_CHECK(record.opening.size() <= fork->num_plies + 1);
    const auto kept = std::min(record.opening.size(), fork->num_plies);
    TENGEN_CHECK(kept == fork->num_plies);
    TENGEN_CHECK(std::equal(record.opening.begin(),
                            record.opening.begin() + static_cast<ptrdiff_t>(kept),
                            source.moves.begin()));
    if (record.opening.size() == kept) continue;  // every move would have ended the game
    const auto state = position_of(game, source, fork->num_plies);
    std::vector<uint16_t> legal(static_cast<size_t>(game.num_actions()));
    MoveTrial<G> trial;
    trial.begin(game, state, fork->num_choices, rng, legal.data());
    float best = -2.0f;
    uint16_t wanted = 0;
    std::set<uint16_t> tried;
    while (trial.is_waiting()) {
      auto then = state;
      game.apply(then, trial.move());
      TENGEN_CHECK(game.outcome(then) == Outcome::kOngoing && tried.insert(trial.move()).second);
      const float sign = game.to_play(then) == game.to_play(state) ? 1.0f : -1.0f;
      const float value = sign * network_value(game, then);
      if (value > best) {
        best = value;
        wanted = trial.move();
      }
      trial.accept(value);
    }
    TENGEN_CHECK(record.opening.back() == wanted);
    num_best_of_three += tried.size() == 3;
  }
  TENGEN_CHECK(num_best_of_three > 20);
  check_same_games(game, settings, setup, records);
}

void check_foreign_sources() {
  SelfplaySettings settings;
  settings.late_fork_share = 1.0f;
  Setup setup;
  setup.fork_sources = {{"", std::vector<uint16_t>(9, 3)}};  // column 3 has space for six
  Generation generation{7, 3, 2, 50, {}, false, {}, {}, setup.fork_sources};
  SelfplayWorker<Connect4> worker(Connect4{}, settings, std::make_shared<GameQueue>(generation),
                                  std::make_shared<MemorySink>());
  TENGEN_CHECK(throws([&] { drive(worker); }));
}

}  // namespace

int main() {
  check_draws();
  check_forks(Connect4{}, Setup{});
  Setup boards;
  boards.variants = {{"", 1.0}, {"go/3/komi=0.5", 1.0}};
  check_forks(Go(GoRules{.height = 4, .width = 4}), boards);
  check_foreign_sources();
  return 0;
}
