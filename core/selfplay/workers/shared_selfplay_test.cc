// Self-play through a shared port gives the same games as workers with their own evaluation.

#include <thread>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "inference/shared_port.h"
#include "inference/testing.h"
#include "selfplay/testing.h"
#include "selfplay/workers/worker.h"

using namespace tengen;

namespace {

template <Game G>
std::vector<GameRecord> play_alone(const G& game, const SelfplaySettings& settings,
                                   const Generation& generation) {
  const auto sink = std::make_shared<MemorySink>();
  SelfplayWorker<G> worker(game, settings, std::make_shared<GameQueue>(generation), sink);
  drive(worker);
  return sink->sorted();
}

template <Game G>
std::vector<GameRecord> play_shared(const G& game, const SelfplaySettings& settings,
                                    const Generation& generation, bool is_packed,
                                    size_t num_threads, size_t num_groups) {
  const RowLayout layout{{static_cast<size_t>(game.num_planes()),
                          static_cast<size_t>(game.height()), static_cast<size_t>(game.width())},
                         is_packed};
  const auto num_actions = static_cast<size_t>(game.num_actions());
  const size_t num_lanes = 3;
  const size_t capacity = 6;
  LaneMemory memory(layout, num_actions, capacity, num_lanes);
  SharedPort shared(layout, num_actions, capacity, memory.buffers(), num_threads);
  const auto queue = std::make_shared<GameQueue>(generation);
  const auto sink = std::make_shared<MemorySink>();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      std::vector<std::unique_ptr<Port>> groups;
      std::vector<Port*> ports;
      for (size_t group = 0; group < num_groups; ++group) {
        groups.push_back(std::make_unique<SelfplayWorker<G>>(game, settings, queue, sink));
        ports.push_back(groups.back().get());
      }
      shared.work(ports);
    });
  }
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    threads.emplace_back([&, lane] {
      BatchBuffers row(1, layout.planes_shape, num_actions);
      while (const size_t num_rows = shared.next(lane)) {
        for (size_t i = 0; i < num_rows; ++i) {
          row.planes = memory.planes(lane, i);
          evaluate_row(row, 0);
          std::copy_n(row.policy.data(), num_actions, memory.policy(lane, i));
          memory.value(lane, i) = row.value[0];
        }
        shared.done(lane);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  TENGEN_CHECK(shared.stats().num_rows > 0);
  return sink->sorted();
}

template <Game G>
void check_same_games(const G& game, RootPolicy policy, uint32_t num_games) {
  SelfplaySettings settings;
  settings.search.policy = policy;
  settings.num_slots = 3;
  settings.full_simulations = 20;
  settings.max_opening_plies = 3;
  settings.cache_bytes = 1 << 16;
  const Generation generation{7, 3, 2, num_games, {1, 4}};
  const std::vector<GameRecord> expected = play_alone(game, settings, generation);
  TENGEN_CHECK(expected.size() == num_games - 2);
  TENGEN_CHECK(play_shared(game, settings, generation, true, 1, 1) == expected);
  TENGEN_CHECK(play_shared(game, settings, generation, true, 3, 2) == expected);
  TENGEN_CHECK(play_shared(game, settings, generation, false, 2, 3) == expected);
}

}  // namespace

int main() {
  check_same_games(Connect4(), RootPolicy::kPuct, 14);
  check_same_games(Gomoku(7), RootPolicy::kGumbel, 8);
  return 0;
}
