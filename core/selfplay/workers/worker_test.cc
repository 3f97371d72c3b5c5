#include "selfplay/workers/worker.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "records/game_record.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings(RootPolicy policy) {
  SelfplaySettings settings;
  settings.search.policy = policy;
  settings.full_simulations = 24;
  settings.cheap_simulations = 8;
  settings.full_probability = 0.5f;
  settings.max_opening_plies = 3;
  return settings;
}

// Checks that the record is a legal game and that its targets match its positions.
template <Game G>
void check_record(const G& game, const SelfplaySettings& settings, const GameRecord& record) {
  TENGEN_CHECK(record.generation == 3 && record.model == 2);
  TENGEN_CHECK(record.opening.size() == record.num_opening_plies);
  TENGEN_CHECK(static_cast<int>(record.opening.size()) <= settings.max_opening_plies);
  auto state = game.initial_state();
  for (const uint16_t action : record.opening) {
    TENGEN_CHECK(game.is_legal(state, action));
    game.apply(state, action);
  }
  TENGEN_CHECK(!record.plies.empty());
  for (const PlyRecord& ply : record.plies) {
    const bool is_full = ply.policy_weight > 0.0f;
    TENGEN_CHECK(ply.policy.empty() != is_full);
    for (const auto& [action, weight] : ply.policy) {
      TENGEN_CHECK(weight > 0 && game.is_legal(state, action));
    }
    const int budget = is_full ? settings.full_simulations : settings.cheap_simulations;
    TENGEN_CHECK(static_cast<int>(ply.num_simulations) <= budget);
    TENGEN_CHECK(std::abs(ply.root_value) <= 1.0f);
    // Without reuse, a full search runs all its simulations, unless it settles the position.
    const bool may_be_settled = ply.root_value == std::round(ply.root_value);
    TENGEN_CHECK(!is_full || may_be_settled || static_cast<int>(ply.num_simulations) == budget);
    TENGEN_CHECK(game.is_legal(state, ply.action));
    game.apply(state, ply.action);
  }
  TENGEN_CHECK(game.outcome(state) == record.outcome && record.outcome != Outcome::kOngoing);
  TENGEN_CHECK(decode(encode(record)) == record);
}

// Cheap searches of a PUCT game reuse the existing tree, if allowed.
void check_reuse() {
  SelfplaySettings settings = make_settings(RootPolicy::kPuct);
  for (const bool reuse : {false, true}) {
    settings.reuse_tree = reuse;
    int num_reused = 0;
    for (const GameRecord& record : play(Gomoku(7), settings, Setup{}, 3)) {
      for (const PlyRecord& ply : record.plies) {
        num_reused += ply.policy_weight == 0.0f && std::abs(ply.root_value) < 1.0f &&
                      static_cast<int>(ply.num_simulations) < settings.cheap_simulations;
      }
    }
    TENGEN_CHECK((num_reused > 10) == reuse);
  }
}

// A game is a function of its index: threads, slots, batches and the cache do not affect it.
template <Game G>
void check_games(const G& game, const SelfplaySettings& settings, uint32_t num_games) {
  const std::vector<GameRecord> expected = play(game, settings, Setup{}, num_games);
  TENGEN_CHECK(expected.size() == num_games);
  for (const GameRecord& record : expected) check_record(game, settings, record);
  TENGEN_CHECK(expected[0].plies != expected[1].plies);
  check_same_games(game, settings, Setup{}, expected);

  // In a resumed generation only the missing games are played, and they do not change.
  std::vector<GameRecord> rest;
  Setup resumed;
  resumed.num_threads = 2;
  for (const GameRecord& record : expected) {
    if (record.game_index % 3 == 0) {
      resumed.finished.push_back(record.game_index);
    } else {
      rest.push_back(record);
    }
  }
  TENGEN_CHECK(play(game, settings, resumed, num_games) == rest);
}

// stop() ends the work soon. Finished games are kept, and unfinished games are dropped.
void check_stop() {
  const Gomoku game(9);
  const SelfplaySettings settings = make_settings(RootPolicy::kPuct);
  const std::vector<GameRecord> expected = play(game, settings, Setup{}, 6);
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 1000, {}});
  const auto sink = std::make_shared<MemorySink>();
  SelfplayWorker<Gomoku> worker(game, settings, queue, sink);
  while (const int num_rows = worker.next()) {
    for (int row = 0; row < num_rows; ++row) evaluate_row(worker.buffers(), row);
    worker.done();
    if (worker.stats().num_games >= 2) queue->stop();
  }
  TENGEN_CHECK(worker.next() == 0 && queue->take() == GameQueue::kNone);
  const std::vector<GameRecord> kept = sink->sorted();
  TENGEN_CHECK(kept.size() == worker.stats().num_games && kept.size() >= 2);
  for (const GameRecord& record : kept) {
    check_record(game, settings, record);
    if (record.game_index < expected.size()) {
      TENGEN_CHECK(record == expected[record.game_index]);
    }
  }
}

void check_stop_from_another_thread() {
  const Gomoku game(9);
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 1000000, {}});
  const auto sink = std::make_shared<MemorySink>();
  std::thread thread([&] {
    SelfplayWorker<Gomoku> worker(game, make_settings(RootPolicy::kGumbel), queue, sink);
    drive(worker);
  });
  while (sink->sorted().empty()) std::this_thread::yield();
  queue->stop();
  thread.join();
  TENGEN_CHECK(!sink->sorted().empty());
}

void check_queue() {
  GameQueue queue(Generation{1, 0, 0, 5, {0, 3}});
  for (const int64_t expected : {1, 2, 4, -1, -1}) TENGEN_CHECK(queue.take() == expected);
  TENGEN_CHECK(throws([] { GameQueue(Generation{1, 0, 0, 5, {5}}); }));
}

class FullSink final : public GameSink {
 public:
  void put(const GameRecord&) override { throw Error("disk (full) must have room; free some"); }
};

// If a game cannot be stored, the worker throws once and does not continue the game.
void check_sink_error() {
  const TicTacToe game;
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 1, {}});
  SelfplayWorker<TicTacToe> worker(game, make_settings(RootPolicy::kPuct), queue,
                                   std::make_shared<FullSink>());
  TENGEN_CHECK(throws([&] { drive(worker); }) && worker.stats().num_games == 0);
  TENGEN_CHECK(worker.next() == 0);
}

// Simulations are counted when they are made, not at the end of their search.
void check_counts() {
  SelfplaySettings settings = make_settings(RootPolicy::kPuct);
  settings.full_probability = 1.0f;
  settings.num_slots = 4;
  settings.cache_bytes = 0;
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 5, {}});
  const auto sink = std::make_shared<MemorySink>();
  SelfplayWorker<Connect4> worker(Connect4(), settings, queue, sink);
  // The first batch contains the roots; each later batch contains one simulation per game.
  for (uint64_t num_batches = 1; num_batches <= 3; ++num_batches) {
    const int num_rows = worker.next();
    TENGEN_CHECK(worker.stats().num_simulations == 4 * (num_batches - 1));
    for (int row = 0; row < num_rows; ++row) evaluate_row(worker.buffers(), row);
    worker.done();
  }
  TENGEN_CHECK(worker.stats().num_plies == 0);
  drive(worker);
  uint64_t num_simulations = 0;
  for (const GameRecord& record : sink->sorted()) {
    for (const PlyRecord& ply : record.plies) num_simulations += ply.num_simulations;
  }
  TENGEN_CHECK(worker.stats().num_simulations == num_simulations);
}

// The counters that another thread reads are a consistent snapshot, and never decrease.
void check_counts_from_another_thread() {
  SelfplaySettings settings = make_settings(RootPolicy::kPuct);
  settings.full_probability = 1.0f;
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 30, {}});
  const auto sink = std::make_shared<MemorySink>();
  SelfplayWorker<Connect4> worker(Connect4(), settings, queue, sink);
  std::atomic<bool> over = false;
  std::thread driver([&] {
    drive(worker);
    over = true;
  });
  WorkerStats last;
  while (!over) {
    const WorkerStats now = worker.stats();
    TENGEN_CHECK(now.num_games >= last.num_games && now.num_rows >= last.num_rows);
    TENGEN_CHECK(now.num_simulations >= last.num_simulations);
    TENGEN_CHECK(now.num_evaluations >= last.num_evaluations && now.num_rows <= now.num_plies);
    last = now;
  }
  driver.join();
  uint64_t num_rows = 0;
  for (const GameRecord& record : sink->sorted()) num_rows += record.plies.size();
  TENGEN_CHECK(worker.stats().num_games == 30 && worker.stats().num_rows == num_rows);
}

// next() without done() would continue from unexpanded leaves, so it throws.
void check_misuse() {
  const Connect4 game;
  const auto queue = std::make_shared<GameQueue>(Generation{7, 3, 2, 5, {}});
  SelfplayWorker<Connect4> worker(game, make_settings(RootPolicy::kPuct), queue,
                                  std::make_shared<MemorySink>());
  TENGEN_CHECK(worker.next() > 0);
  TENGEN_CHECK(throws([&] { worker.next(); }));
}

}  // namespace

int main() {
  for (const RootPolicy policy : {RootPolicy::kPuct, RootPolicy::kGumbel}) {
    SelfplaySettings settings = make_settings(policy);
    check_games(TicTacToe(), settings, 20);
    check_games(Connect4(), settings, 12);
    check_games(Gomoku(7), settings, 8);
    settings.reuse_tree = false;
    settings.max_opening_plies = 0;
    check_games(Connect4(), settings, 8);
  }
  check_reuse();
  check_stop();
  check_stop_from_another_thread();
  check_queue();
  check_sink_error();
  check_counts();
  check_counts_from_another_thread();
  check_misuse();
  return 0;
}
