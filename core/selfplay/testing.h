#pragma once
// A network, a game sink and complete generations for the native tests of self-play.

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "games/connect4/connect4.h"
#include "games/go/go.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "inference/evaluators.h"
#include "inference/port.h"
#include "records/game_sink.h"
#include "selfplay/match/match.h"
#include "selfplay/session/session.h"
#include "selfplay/session/shared_session.h"
#include "selfplay/workers/make_worker.h"

namespace tengen {

// Many tests need these templates for the same games, and compiling one takes ten seconds. So only
// testing.cc instantiates them. `storage` is extern or empty.
#define TENGEN_SELFPLAY_OF(storage, G)                                 \
  storage template class SelfplayWorker<G>;                            \
  storage template class MinigoWorker<G>;                              \
  storage template class GameSession<G>;                               \
  storage template std::unique_ptr<SelfplayPort> make_selfplay_worker( \
      const G&, const SelfplaySettings&, std::shared_ptr<GameQueue>, std::shared_ptr<GameSink>);
#define TENGEN_SEARCHED_OF(storage, G) \
  storage template class Match<G>;     \
  storage template class SharedGameSession<G>;
TENGEN_SELFPLAY_OF(extern, Connect4)
TENGEN_SELFPLAY_OF(extern, Go)
TENGEN_SELFPLAY_OF(extern, Gomoku)
TENGEN_SELFPLAY_OF(extern, TicTacToe)
TENGEN_SEARCHED_OF(extern, Connect4)
TENGEN_SEARCHED_OF(extern, Gomoku)
TENGEN_SEARCHED_OF(extern, TicTacToe)

// Evaluates a row from its planes only, like a network, independently of the batch.
inline void evaluate_row(BatchBuffers& buffers, int row) {
  const auto [planes, height, width] = buffers.planes_shape;
  const float* plane = buffers.planes_row(row);
  uint64_t hash = 1;
  for (size_t i = 0; i < planes * height * width; ++i) {
    hash = mix64(hash * 31 + std::bit_cast<uint32_t>(plane[i]));
  }
  for (size_t action = 0; action < buffers.num_actions; ++action) {
    buffers.policy_row(row)[action] = static_cast<float>(mix64(hash + action) >> 40) * 0x1.0p-22f;
  }
  const float value = static_cast<float>(hash >> 40) * 0x1.0p-23f - 1.0f;
  buffers.value[static_cast<size_t>(row)] = value;
  if (float* score = buffers.score_row(row)) hash_score({hash, hash}, value, score);
}

// Returns the sum of one plane.
inline float sum_of(const float* planes, int plane, int num_cells) {
  const float* first = planes + plane * num_cells;
  return std::accumulate(first, first + num_cells, 0.0f);
}

// Drives a port to completion; `evaluate` writes the network's outputs for a row.
template <class Evaluate>
void drive(Port& port, Evaluate evaluate) {
  while (const int num_rows = port.next()) {
    for (int row = 0; row < num_rows; ++row) evaluate(port.buffers(), row);
    port.done();
  }
}
inline void drive(Port& port) { drive(port, evaluate_row); }

// A game sink that stores the games in memory.
class MemorySink final : public GameSink {
 public:
  void put(const GameRecord& record) override {
    const std::lock_guard lock(mutex_);
    records_.push_back(record);
  }
  // Returns the stored games, sorted by index.
  std::vector<GameRecord> sorted() {
    const std::lock_guard lock(mutex_);
    std::vector<GameRecord> records = records_;
    std::sort(records.begin(), records.end(),
              [](const GameRecord& a, const GameRecord& b) { return a.game_index < b.game_index; });
    return records;
  }

 private:
  std::mutex mutex_;
  std::vector<GameRecord> records_;
};

// Plays a generation with `evaluate` as its network. Returns the games, sorted by index.
template <Game G, class Evaluate>
std::vector<GameRecord> play_by(const G& game, const SelfplaySettings& settings,
                                const Generation& generation, Evaluate evaluate) {
  const auto sink = std::make_shared<MemorySink>();
  const auto worker =
      make_selfplay_worker(game, settings, std::make_shared<GameQueue>(generation), sink);
  drive(*worker, evaluate);
  return sink->sorted();
}

// The resources of a generation, which must not affect its games, and settings that choose games.
struct Setup {
  int num_threads = 1;
  int num_slots = 4;
  uint64_t cache_bytes = 1 << 16;
  std::vector<uint32_t> finished;
  bool may_resign = false;
  std::vector<std::pair<std::string, double>> variants = {};
  std::vector<ForkSource> fork_sources = {};
  std::vector<std::vector<uint16_t>> openings = {};
};

// Plays generation 3 on model 2; returns its games, sorted by index.
template <Game G>
std::vector<GameRecord> play(const G& game, SelfplaySettings settings, const Setup& setup,
                             uint32_t num_games) {
  settings.num_slots = setup.num_slots;
  settings.cache_bytes = setup.cache_bytes;
  const Generation generation{7,
                              3,
                              2,
                              num_games,
                              setup.finished,
                              setup.may_resign,
                              setup.variants,
                              {},
                              setup.fork_sources,
                              setup.openings};
  const auto queue = std::make_shared<GameQueue>(generation);
  const auto sink = std::make_shared<MemorySink>();
  std::vector<std::thread> threads;
  for (int i = 0; i < setup.num_threads; ++i) {
    threads.emplace_back([&] { drive(*make_selfplay_worker(game, settings, queue, sink)); });
  }
  for (std::thread& thread : threads) thread.join();
  return sink->sorted();
}

// Checks that threads, slots and the cache's size do not affect the games of a generation.
template <Game G>
void check_same_games(const G& game, const SelfplaySettings& settings, Setup setup,
                      const std::vector<GameRecord>& expected) {
  for (const auto& [num_threads, num_slots, cache_bytes] :
       {std::tuple{1, 16, 1 << 16}, {1, 1, 1 << 10}, {3, 16, 1 << 10}, {3, 4, 0}}) {
    setup.num_threads = num_threads;
    setup.num_slots = num_slots;
    setup.cache_bytes = static_cast<uint64_t>(cache_bytes);
    TENGEN_CHECK(play(game, settings, setup, static_cast<uint32_t>(expected.size())) == expected);
  }
}

}  // namespace tengen
