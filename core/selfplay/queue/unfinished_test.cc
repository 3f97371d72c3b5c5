// A process that resumes games in flight plays the same games as an uninterrupted process.

#include "selfplay/queue/unfinished.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/testing.h"
#include "games/connect4/connect4.h"
#include "games/go/testing.h"
#include "selfplay/testing.h"
#include "selfplay/workers/worker.h"

using namespace tengen;

namespace {

SelfplaySettings make_settings(RootPolicy policy, float surprise_share) {
  SelfplaySettings settings;
  settings.search.policy = policy;
  settings.full_simulations = 16;
  settings.cheap_simulations = 6;
  settings.full_probability = 0.4f;
  settings.max_opening_plies = 2;
  settings.policy_opening_plies = 1.0f;
  settings.policy_surprise_share = surprise_share;
  settings.value_surprise_share = surprise_share / 2;
  settings.num_slots = 4;
  return settings;
}

struct Played {
  std::vector<GameRecord> records;
  std::vector<std::string> unfinished;
};

// Drives a worker for `num_batches` batches, or to completion if negative. Returns all its games.
template <Game G>
Played play_for(const G& game, const SelfplaySettings& settings, const Generation& generation,
                int num_batches) {
  const auto queue = std::make_shared<GameQueue>(generation);
  const auto sink = std::make_shared<MemorySink>();
  const auto worker = make_selfplay_worker(game, settings, queue, sink);
  while (num_batches-- != 0) {
    const int num_rows = worker->next();
    if (num_rows == 0) break;
    for (int row = 0; row < num_rows; ++row) evaluate_row(worker->buffers(), row);
    worker->done();
  }
  // Alternates between the two ways to keep unfinished games.
  if (num_batches % 2 == 0) {
    worker->keep_unfinished();
  } else {
    queue->request_snapshot();
    worker->next();
  }
  return {sink->sorted(), queue->unfinished()};
}

template <Game G>
void check_interrupted(const G& game, const SelfplaySettings& settings) {
  Generation generation{7, 3, 2, 12, {}, false, {}, {}};
  const std::vector<GameRecord> expected = play_for(game, settings, generation, -1).records;
  TENGEN_CHECK(expected.size() == 12);
  const bool is_minigo = settings.search.policy == RootPolicy::kMinigo;
  size_t num_gone_on_with = 0;
  size_t num_with_extra = 0;  // games whose next full search makes up for visits
  // The generation is interrupted repeatedly at different points. Parts become longer, because a
  // part must reach the second of two full searches to keep the plies between them.
  std::vector<GameRecord> found;
  for (int round = 0; found.size() < 12; ++round) {
    TENGEN_CHECK(round < 400);
    const Played part = play_for(game, settings, generation, 25 + 7 * (round % 5) + round / 4);
    for (const GameRecord& record : part.records) {
      found.push_back(record);
      generation.finished.push_back(record.game_index);
    }
    num_gone_on_with += part.unfinished.size();
    for (const std::string& bytes : part.unfinished) {
      const UnfinishedGame begun = decode_unfinished_game(bytes);
      TENGEN_CHECK(encode(begun) == bytes);
      TENGEN_CHECK(begun.record.outcome == Outcome::kOngoing);
      TENGEN_CHECK(is_minigo || !begun.record.plies.empty());
      num_with_extra += begun.num_extra_simulations > 0;
    }
    generation.unfinished = part.unfinished;
  }
  TENGEN_CHECK(num_gone_on_with > 12 && (num_with_extra > 8) == is_minigo);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.game_index < b.game_index; });
  TENGEN_CHECK(found == expected);
}

// If a newer model continues a game, the record has that model and the first ply that it plays.
void check_switches(const SelfplaySettings& settings) {
  const Connect4 game;
  Generation generation{7, 3, 2, 4, {}, false, {}, {}};
  Played part = play_for(game, settings, generation, 60);
  TENGEN_CHECK(!part.unfinished.empty());
  generation.model = 5;
  generation.unfinished = part.unfinished;
  for (const GameRecord& record : part.records) generation.finished.push_back(record.game_index);
  const GameQueue queue(generation);
  for (const GameRecord& record : play_for(game, settings, generation, -1).records) {
    const UnfinishedGame* begun = queue.begun(record.game_index);
    if (begun == nullptr) {
      TENGEN_CHECK(record.model == 5 && record.switches.empty());
    } else {
      const auto ply = static_cast<uint16_t>(begun->record.plies.size());
      TENGEN_CHECK((record.model == 2 && record.switches == std::vector<ModelSwitch>{{ply, 5}}));
    }
    TENGEN_CHECK(decode(encode(record)) == record);
  }
}

void check_bad_bytes() {
  UnfinishedGame game;
  game.record.plies.resize(1);
  game.notes.resize(1);
  const std::string bytes = encode(game);
  TENGEN_CHECK(decode_unfinished_game(bytes).notes.size() == 1);
  TENGEN_CHECK(throws([&] { decode_unfinished_game(bytes.substr(0, bytes.size() - 1)); }));
  TENGEN_CHECK(throws([&] { decode_unfinished_game(bytes + "x"); }));
  TENGEN_CHECK(throws([&] { decode_unfinished_game(""); }));
  game.notes.resize(2);
  TENGEN_CHECK(throws([&] { decode_unfinished_game(encode(game)); }));
  // A wrong generation is rejected; a finished game or an index out of range is ignored.
  game.notes.resize(1);
  game.record.generation = 1;
  game.record.game_index = 3;
  const std::string third = encode(game);
  TENGEN_CHECK(throws([&] { GameQueue({1, 2, 0, 9, {}, false, {}, {third}}); }));
  TENGEN_CHECK(GameQueue({1, 1, 0, 9, {}, false, {}, {third}}).num_begun() == 1);
  // If the queue is stopped before a worker continues the game, the game is still kept.
  TENGEN_CHECK(GameQueue({1, 1, 0, 9, {}, false, {}, {third}}).unfinished() ==
               std::vector<std::string>{third});
  TENGEN_CHECK(GameQueue({1, 1, 0, 9, {3}, false, {}, {third}}).unfinished().empty());
  TENGEN_CHECK(GameQueue({1, 1, 0, 3, {}, false, {}, {third}}).num_begun() == 0);
  TENGEN_CHECK(GameQueue({1, 1, 0, 9, {3}, false, {}, {third}}).num_begun() == 0);
}

void check_bad_extras() {
  UnfinishedGame game;
  game.record.plies.resize(1);
  game.notes.resize(1);
  game.num_extra_simulations = 7;
  const std::string bytes = encode(game);
  TENGEN_CHECK(decode_unfinished_game(bytes).num_extra_simulations == 7);
  game.num_extra_simulations = 0;
  const std::string without = encode(game);
  TENGEN_CHECK(decode_unfinished_game(without).num_extra_simulations == 0);
  TENGEN_CHECK(bytes.substr(6) == without);
  for (const uint32_t num : {0u, kMaxSimulations + 1u, UINT32_MAX}) {
    std::string bad = bytes;
    std::memcpy(bad.data() + 2, &num, sizeof(num));
    TENGEN_CHECK(throws([&] { decode_unfinished_game(bad); }));
  }
  TENGEN_CHECK(throws([&] { decode_unfinished_game(bytes.substr(0, 5)); }));
  // A second record of extra simulations is rejected, as is the former format with a root value.
  TENGEN_CHECK(throws([&] { decode_unfinished_game(bytes.substr(0, 6) + bytes); }));
  const std::string former = std::string("\xff\xff\3\0\0\0\0\0\0\0", 10) + without;
  TENGEN_CHECK(throws([&] { decode_unfinished_game(former); }));
}

}  // namespace

int main() {
  check_interrupted(Connect4(), make_settings(RootPolicy::kPuct, 0.5f));
  check_interrupted(Connect4(), make_settings(RootPolicy::kGumbel, 0.0f));
  SelfplaySettings of_go = make_settings(RootPolicy::kPuct, 0.3f);
  of_go.lead_share = 0.5f;
  of_go.lead_simulations = 1;
  check_interrupted(go_game("go/4"), of_go);
  SelfplaySettings minigo = make_settings(RootPolicy::kMinigo, 0.0f);
  minigo.search.noise_weight = 0.3f;
  minigo.full_simulations = 20;
  minigo.policy_opening_plies = 0.0f;
  minigo.settled_playout_share = 0.0f;
  check_interrupted(Connect4(), minigo);
  check_interrupted(go_game("go/4/nosuicide"), minigo);
  for (const auto& settings : {make_settings(RootPolicy::kPuct, 0.0f), minigo}) {
    check_switches(settings);
  }
  check_bad_bytes();
  check_bad_extras();
  return 0;
}
