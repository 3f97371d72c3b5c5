// Compares a store that has several clients with a model: no messages of one client, in any order,
// may change the bytes of other clients' items or how often they are used.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/rng.h"
#include "fuzz/scratch_folder.h"
#include "fuzz/store_samplers.h"
#include "fuzz/store_scene.h"
#include "fuzz/store_writers.h"
#include "fuzz/target.h"
#include "store/disk/keeper.h"

namespace tengen::fuzz {
namespace {

using namespace scene;

// Compares the store's files with the model, opens a second store on these files, and samples all
// remaining items.
void check_what_is_left(const std::string& folder, uint64_t memory_bytes, bool is_whole,
                        Model* model) {
  {
    const auto state = store::Keeper::load(folder);
    expect(state.has_value() && state->loans.empty(), "a store leaves its state, and no loan");
    for (uint32_t table = 0; table < kNumTables; ++table) {
      model->check_saved(table, state->tables[table], is_whole);
    }
  }
  World world(folder, memory_bytes, /*goes_on=*/true);
  for (uint32_t table = 0; table < kNumTables; ++table) {
    store::Sampler sampler(world.store.open_sampler(table, 1, 0), schema(), world.store.slab_map(0),
                           1, kNumSteps[table]);
    const uint64_t size = world.of_table(table, [](const auto& one) { return one.size(); });
    const uint64_t most = table == kTwice ? UINT64_MAX : 2 * size;
    for (uint64_t i = 0; i < most && world.can_draw(table, 1); ++i) {
      const std::optional<store::Delivery> batch = sampler.next(in_time());
      expect(batch.has_value(), "a batch in time");
      for (const Model::Drawn& drawn : read_batch(table, batch->keys, batch->data.get())) {
        model->lend(drawn, is_whole);
        model->end_loan(drawn, true);
      }
      sampler.ack(batch->lease, {});
    }
  }
  // Items removed to free memory may have been used less often.
  if (is_whole) model->check_all_used();
}

// Returns the commands of an input: the input itself, or, if its first bit is set, random bytes
// with the input as seed, so that a small change of the input changes all commands.
std::string commands_of(std::string_view bytes) {
  std::string commands(bytes.substr(0, kMaxCommandBytes));
  if (commands.empty() || (commands[0] & 1) == 0) return commands;
  Rng rng(crc32c(commands), 0, 0, 0, Purpose::kTest);
  commands.erase(0, 1);
  while (commands.size() < kMaxCommandBytes) commands += static_cast<char>(rng.below(256));
  return commands;
}

uint64_t run_scene(std::string_view bytes) {
  const std::string all = commands_of(bytes);
  Commands commands{all};
  const uint64_t memory_bytes = kMemoryBytes[commands.next() % 2];
  bool is_whole = true;
  const ScratchFolder folder;
  Scene scene;
  {
    World world(folder.path(), memory_bytes, /*goes_on=*/false);
    scene.world = &world;
    const auto add = [&](auto client) { scene.clients.push_back(std::move(client)); };
    add(std::make_unique<RawWriter>(&scene, "raw"));
    add(std::make_unique<LibraryWriter>(&scene, "local", Door::kLocal));
    add(std::make_unique<RawWriter>(&scene, "raw too"));
    add(std::make_unique<LibraryWriter>(&scene, "host", Door::kHost));
    add(std::make_unique<LibraryWriter>(&scene, "net", Door::kNet));
    for (uint32_t table = 0; table < kNumTables; ++table) {
      add(std::make_unique<RawSampler>(&scene, table));
      add(std::make_unique<LibrarySampler>(&scene, table,
                                           table == kAny ? Door::kHost : Door::kLocal));
    }
    // With fewer clients, each one sends more messages per chunk.
    const size_t num_clients = 3 + commands.next() % (scene.clients.size() - 2);
    while (!commands.is_at_end()) {
      scene.clients[commands.next() % num_clients]->act(commands);
    }
    scene.end_others(nullptr);
    scene.clients.clear();
    world.wait_until_alone();
    is_whole = world.is_whole();
  }
  check_what_is_left(folder.path(), memory_bytes, is_whole, &scene.model);
  return scene.num_messages;
}

void play(std::string_view bytes) {
  static struct Told {
    ~Told() { std::printf("store_model: %llu messages\n", num_messages); }
    unsigned long long num_messages = 0;
  } told;
  told.num_messages += run_scene(bytes);
}

std::vector<std::string> scene_seeds() {
  std::vector<std::string> seeds;
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (int i = 0; i < 4; ++i) {
    seeds.emplace_back(1, static_cast<char>(i));
    for (int j = 0; j < 16; ++j) seeds.back() += static_cast<char>(rng.below(256));
  }
  return seeds;
}

}  // namespace

std::vector<Target> store_model_targets() { return {{"store_model", play, scene_seeds}}; }

}  // namespace tengen::fuzz
