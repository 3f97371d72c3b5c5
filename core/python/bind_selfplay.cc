// Self-play workers, matches and sessions, which are driven through ports.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/arrays.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "python/python_source.h"
#include "selfplay/benchmark/search_benchmark.h"
#include "selfplay/benchmark/shared_benchmark.h"
#include "selfplay/decided/resignation.h"
#include "selfplay/match/match.h"
#include "selfplay/queue/game_queue.h"
#include "selfplay/session/session.h"
#include "selfplay/session/shared_session.h"
#include "selfplay/workers/make_worker.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

void bind_workers(nb::module_& m) {
  nb::class_<WorkerStats>(m, "WorkerStats", "Counters of one worker since its start.")
      .def_ro("num_games", &WorkerStats::num_games)
      .def_ro("num_plies", &WorkerStats::num_plies)
      .def_ro("num_rows", &WorkerStats::num_rows)
      .def_ro("num_simulations", &WorkerStats::num_simulations)
      .def_ro("num_evaluations", &WorkerStats::num_evaluations)
      .def_ro("num_cache_hits", &WorkerStats::num_cache_hits)
      .def_ro("num_batches", &WorkerStats::num_batches);

  nb::class_<SelfplaySettings>(m, "SelfplaySettings", "See tengen.actors.SelfplayConfig.")
      .def(nb::init<>())
      .def_rw("search", &SelfplaySettings::search)
      .def_rw("num_slots", &SelfplaySettings::num_slots)
      .def_rw("full_simulations", &SelfplaySettings::full_simulations)
      .def_rw("cheap_simulations", &SelfplaySettings::cheap_simulations)
      .def_rw("full_probability", &SelfplaySettings::full_probability)
      .def_rw("temperature_early", &SelfplaySettings::temperature_early)
      .def_rw("temperature_late", &SelfplaySettings::temperature_late)
      .def_rw("temperature_halflife", &SelfplaySettings::temperature_halflife)
      .def_rw("book_share", &SelfplaySettings::book_share)
      .def_rw("max_opening_plies", &SelfplaySettings::max_opening_plies)
      .def_rw("policy_opening_plies", &SelfplaySettings::policy_opening_plies)
      .def_rw("policy_opening_temperature", &SelfplaySettings::policy_opening_temperature)
      .def_rw("early_fork_share", &SelfplaySettings::early_fork_share)
      .def_rw("early_fork_plies", &SelfplaySettings::early_fork_plies)
      .def_rw("early_fork_choices", &SelfplaySettings::early_fork_choices)
      .def_rw("late_fork_share", &SelfplaySettings::late_fork_share)
      .def_rw("late_fork_choices", &SelfplaySettings::late_fork_choices)
      .def_rw("reduce_above", &SelfplaySettings::reduce_above)
      .def_rw("reduced_weight", &SelfplaySettings::reduced_weight)
      .def_rw("resign_above", &SelfplaySettings::resign_above)
      .def_rw("resign_playout_share", &SelfplaySettings::resign_playout_share)
      .def_rw("settled_playout_share", &SelfplaySettings::settled_playout_share)
      .def_rw("policy_surprise_share", &SelfplaySettings::policy_surprise_share)
      .def_rw("value_surprise_share", &SelfplaySettings::value_surprise_share)
      .def_rw("lead_share", &SelfplaySettings::lead_share)
      .def_rw("lead_simulations", &SelfplaySettings::lead_simulations)
      .def_rw("soft_pick_plies", &SelfplaySettings::soft_pick_plies)
      .def_rw("soft_pick_exponent", &SelfplaySettings::soft_pick_exponent)
      .def_rw("restrict_pass_alive_after", &SelfplaySettings::restrict_pass_alive_after)
      .def_rw("resign_from", &SelfplaySettings::resign_from)
      .def_rw("may_pass", &SelfplaySettings::may_pass)
      .def_rw("prunes_target", &SelfplaySettings::prunes_target)
      .def_rw("reuse_tree", &SelfplaySettings::reuse_tree)
      .def_rw("cache_bytes", &SelfplaySettings::cache_bytes);

  nb::class_<GameQueue>(m, "GameQueue", "Hands out each game of one generation or match once.")
      .def(
          "__init__",
          [](GameQueue* self, uint64_t seed, uint32_t generation, uint32_t model,
             uint32_t num_games, std::vector<uint32_t> finished, bool may_resign,
             std::vector<std::pair<std::string, double>> variants,
             const std::vector<nb::bytes>& unfinished,
             std::vector<std::pair<std::string, std::vector<uint16_t>>> fork_sources,
             std::vector<std::vector<uint16_t>> openings) {
            std::vector<ForkSource> sources;
            for (auto& [variant, moves] : fork_sources) {
              sources.push_back({std::move(variant), std::move(moves)});
            }
            std::vector<std::string> begun;
            for (const nb::bytes& one : unfinished) begun.emplace_back(one.c_str(), one.size());
            new (self) GameQueue({seed, generation, model, num_games, std::move(finished),
                                  may_resign, std::move(variants), std::move(begun),
                                  std::move(sources), std::move(openings)});
          },
          nb::kw_only(), "seed"_a, "generation"_a, "model"_a, "num_games"_a,
          "finished"_a = std::vector<uint32_t>{}, "may_resign"_a = false,
          "variants"_a = std::vector<std::pair<std::string, double>>{},
          "unfinished"_a = std::vector<nb::bytes>{},
          "fork_sources"_a = std::vector<std::pair<std::string, std::vector<uint16_t>>>{},
          "openings"_a = std::vector<std::vector<uint16_t>>{},
          "``variants``: names and sampling weights of variants; empty: only the game itself.\n"
          "``unfinished``: games to continue, as returned by ``unfinished()``.\n"
          "``fork_sources``: variant and moves of games to fork from.\n"
          "``openings``: moves of the book's openings.")
      .def("request_snapshot", &GameQueue::request_snapshot,
           "Makes every worker save its unfinished games soon. Does not wait. Thread-safe.")
      .def(
          "unfinished", [](const GameQueue& self) { return bytes_of(self.unfinished()); },
          "Returns the last saved states of unfinished games. Thread-safe.")
      .def("variant", &GameQueue::variant, "index"_a, "Returns the variant of game ``index``.")
      .def("stop", &GameQueue::stop, "Makes workers drop unfinished games and end. Thread-safe.")
      .def_prop_ro("num_begun", &GameQueue::num_begun,
                   "Number of games in ``unfinished`` at construction.")
      .def_prop_ro("stopped", &GameQueue::stopped, "Whether stop() has been called.")
      .def_prop_ro("num_wanted", &GameQueue::num_wanted, "Number of games to hand out in total.");

  nb::class_<SelfplayPort, Port>(m, "SelfplayPort", "One self-play worker.")
      .def_prop_ro("stats", &SelfplayPort::stats,
                   "Statistics up to the last completed next() or done(). Thread-safe.")
      .def("keep_unfinished", &SelfplayPort::keep_unfinished,
           "Saves its games for the queue's ``unfinished()``. No thread may drive the port now.");

  m.def(
      "make_selfplay_worker",
      [](const nb::object& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
         std::shared_ptr<GameSink> sink) {
        return with_any_game(game, [&](const auto& rules) -> std::unique_ptr<SelfplayPort> {
          return make_selfplay_worker(rules, settings, queue, sink);
        });
      },
      "game"_a, "settings"_a, "queue"_a, "sink"_a);

  m.def(
      "check_resignation",
      [](const nb::object& game, const SelfplaySettings& settings, const nb::kwargs& columns) {
        const SegmentColumns games(columns);
        return with_any_game(game, [&](const auto& rules) {
          GilReleased release;
          const ResignationCheck check = check_resignation(rules, settings, games.view());
          return std::make_pair(check.num_checked, check.num_false);
        });
      },
      "game"_a, "settings"_a, "columns"_a,
      nb::sig("def check_resignation(game: object, settings: SelfplaySettings, "
              "**columns: numpy.typing.NDArray[typing.Any]) -> tuple[int, int]"),
      "Returns the number of games that were played on after a player would have resigned, and\n"
      "the number of those that this player did not lose.");
}

void bind_sessions(nb::module_& m) {
  nb::class_<SearchSession>(m, "SearchSession", "A search driven by its caller, through ports.")
      .def("begin", &SearchSession::begin, "moves"_a, "request"_a, "variant"_a = "",
           "keeps_tree"_a = false)
      .def("extend", &SearchSession::extend, "num_simulations"_a)
      .def("variation", &SearchSession::variation, "action"_a, "max_length"_a)
      .def("port", &SearchSession::port, "index"_a, nb::rv_policy::reference_internal)
      .def("stop", &SearchSession::stop, "Makes every next() return soon. Thread-safe.")
      .def_prop_ro("result", &SearchSession::result, nb::rv_policy::copy);
  m.def(
      "make_session",
      [](const nb::object& game, const SearchSettings& settings, size_t cache_bytes) {
        return with_any_game(game, [&](const auto& rules) -> std::unique_ptr<SearchSession> {
          using G = std::decay_t<decltype(rules)>;
          return std::make_unique<GameSession<G>>(rules, settings, cache_bytes);
        });
      },
      "game"_a, "settings"_a, "cache_bytes"_a = size_t{16} << 20);
  m.def(
      "make_shared_session",
      [](const std::string& game, const SearchSettings& settings, int num_threads, int batch_rows,
         size_t cache_bytes) {
        return with_game(game, [&](const auto& rules) -> std::unique_ptr<SearchSession> {
          using G = std::decay_t<decltype(rules)>;
          return std::make_unique<SharedGameSession<G>>(rules, settings, num_threads, batch_rows,
                                                        cache_bytes);
        });
      },
      "game"_a, "settings"_a, nb::kw_only(), "num_threads"_a, "batch_rows"_a,
      "cache_bytes"_a = size_t{16} << 20);
  m.def(
      "benchmark_threads",
      [](const std::string& game, const SearchSettings& settings, const std::string& evaluator,
         int num_simulations, uint64_t num_searches, int num_threads, int batch_rows) {
        return with_game(game, [&](const auto& rules) {
          GilReleased release;
          return SharedBenchmarkRun(rules, {settings, evaluator == "null", num_simulations,
                                            num_searches, num_threads, batch_rows})
              .run();
        });
      },
      "game"_a, "settings"_a, "evaluator"_a, nb::kw_only(), "num_simulations"_a, "num_searches"_a,
      "num_threads"_a, "batch_rows"_a,
      "Returns the simulations of `num_searches` searches with `num_threads` threads per tree.\n"
      "`evaluator` is null or hash.");
  m.def(
      "benchmark_search",
      [](const nb::object& game, const SearchSettings& settings, int num_simulations,
         uint64_t num_searches, bool encode, uint64_t seed) {
        return with_any_game(game, [&](const auto& rules) {
          GilReleased release;
          return benchmark_search(rules, settings, num_simulations, num_searches, encode, seed)
              .num_simulations;
        });
      },
      "game"_a, "settings"_a, "num_simulations"_a, "num_searches"_a, "encode"_a, "seed"_a = 0,
      "Returns the simulations of `num_searches` searches with the hash evaluator on this thread.");
  m.def(
      "mcts_choose",
      [](const nb::object& game, const std::vector<int>& moves, int num_playouts, uint64_t seed) {
        return with_any_game(game, [&](const auto& rules) {
          GilReleased release;
          auto state = rules.initial_state();
          play_moves(rules, state, moves);
          const Rng rng(seed, 0, 0, static_cast<uint32_t>(rules.ply(state)), Purpose::kRollout);
          return Uct(rules, num_playouts).choose(state, rng);
        });
      },
      "game"_a, "moves"_a, "num_playouts"_a, "seed"_a = 0, "Returns the move of player `mcts:N`.");
}

void bind_matches(nb::module_& m) {
  nb::enum_<MatchPlayer::Kind>(m, "PlayerKind")
      .value("NETWORK", MatchPlayer::Kind::kNetwork)
      .value("MCTS", MatchPlayer::Kind::kMcts)
      .value("RANDOM", MatchPlayer::Kind::kRandom)
      .value("OUTSIDE", MatchPlayer::Kind::kOutside);
  m.attr("RESIGN_MOVES") = kResignMoves;
  nb::class_<MatchPlayer>(m, "MatchPlayer", "One side of a match.")
      .def(nb::init<>())
      .def_rw("kind", &MatchPlayer::kind)
      .def_rw("num_simulations", &MatchPlayer::num_simulations)
      .def_rw("search", &MatchPlayer::search)
      .def_rw("keeps_tree", &MatchPlayer::keeps_tree)
      .def_rw("resign_below", &MatchPlayer::resign_below);
  nb::class_<MatchGame>(m, "MatchGame", "One finished game of a match.")
      .def_ro("index", &MatchGame::index)
      .def_ro("first_player", &MatchGame::first_player)
      .def_ro("moves", &MatchGame::moves)
      .def_ro("num_opening_plies", &MatchGame::num_opening_plies)
      .def_prop_ro("value_of_player0", &MatchGame::value_of_player0);
  nb::class_<MatchTurn>(m, "MatchTurn", "A game of a match that waits for an external move.")
      .def_ro("index", &MatchTurn::index)
      .def_ro("moves", &MatchTurn::moves);
  nb::class_<MatchRunner>(m, "Match", "Games between two players, driven by two ports.")
      .def("port", &MatchRunner::port, "player"_a, nb::rv_policy::reference_internal)
      .def("turns", &MatchRunner::turns, "player"_a)
      .def("play", &MatchRunner::play, "index"_a, "action"_a)
      .def("resign", &MatchRunner::resign, "index"_a)
      .def_prop_ro("finished", &MatchRunner::finished)
      .def(
          "games",
          [](const MatchRunner& match, size_t first) {
            const auto& games = match.games();
            const size_t begin = std::min(first, games.size());
            return std::vector<MatchGame>(games.begin() + static_cast<ptrdiff_t>(begin),
                                          games.end());
          },
          "first"_a, "Returns finished games in order of completion, from index ``first`` on.")
      .def_prop_ro("num_games", [](const MatchRunner& match) { return match.games().size(); });
  m.def(
      "make_match",
      [](const nb::object& game, const MatchPlayer& player0, const MatchPlayer& player1,
         const std::shared_ptr<GameQueue>& queue, int num_slots, int num_opening_plies) {
        MatchSettings settings;
        settings.players[0] = player0;
        settings.players[1] = player1;
        settings.num_slots = num_slots;
        settings.num_opening_plies = num_opening_plies;
        return with_any_game(game, [&](const auto& rules) -> std::unique_ptr<MatchRunner> {
          using G = std::decay_t<decltype(rules)>;
          return std::make_unique<Match<G>>(rules, settings, queue);
        });
      },
      "game"_a, "player0"_a, "player1"_a, "queue"_a, nb::kw_only(), "num_slots"_a,
      "num_opening_plies"_a);
}

}  // namespace

void bind_selfplay(nb::module_& m) {
  bind_workers(m);
  bind_sessions(m);
  bind_matches(m);
}

}  // namespace tengen
