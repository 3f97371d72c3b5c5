// Several clients of one store, held to a model: whatever legal messages one of them sends, in
// whatever order, the items of the others keep each byte and each use.

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
#include "fuzz/store_clients.h"
#include "fuzz/store_scene.h"
#include "fuzz/target.h"

namespace tengen::fuzz {
namespace {

using namespace scene;

// Another store goes on with what the first had, and all of it is used up.
void use_up(const std::string& folder, uint64_t memory_bytes, Model* model) {
  World world(folder, memory_bytes, /*goes_on=*/true);
  for (uint32_t table = 0; table < kNumTables; ++table) {
    store::Sampler sampler(world.store.open_sampler(table, 1, 0), schema(), world.store.slab_map(0),
                           1, kNumSteps[table]);
    for (int i = 0; world.can_draw(table, 1) && (table == 1 || i < 40); ++i) {
      const std::optional<store::Gathered> batch = sampler.next(in_time());
      expect(batch.has_value(), "a batch in time");
      for (const Model::Item& item : read_batch(table, batch->data.get(), 1)) {
        model->lend(item);
        model->end_loan(item, true);
      }
      sampler.port().ack(batch->delivery.lease, {});
    }
  }
}

// What is to be done: the input itself, or with its first bit also much that follows from it by
// chance, so that a small change of an input changes all that comes.
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
  bool has_removed = false;
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
    add(std::make_unique<RawSampler>(&scene, 0));
    add(std::make_unique<RawSampler>(&scene, 1));
    add(std::make_unique<LibrarySampler>(&scene, 0, Door::kHost));
    add(std::make_unique<LibrarySampler>(&scene, 1, Door::kLocal));
    // With fewer clients more comes between two messages of one chunk.
    const size_t num_clients = 3 + commands.next() % (scene.clients.size() - 2);
    while (!commands.is_at_end()) {
      scene.clients[commands.next() % num_clients]->act(commands);
    }
    scene.end_others(nullptr);
    scene.clients.clear();
    world.wait_until_alone();
    has_removed = world.store.read([](const Engine& engine) { return engine.num_removed() > 0; });
  }
  use_up(folder.path(), memory_bytes, &scene.model);
  // Items that made room for others may have been used less.
  if (!has_removed) scene.model.check_all_used();
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
