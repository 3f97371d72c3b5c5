#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "store/clients/writer.h"
#include "store/service/server.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

// Who changes the store in steps goes on until another one had its turn.
void check_turns() {
  Store store("", 1 << 20, 3);
  std::atomic<bool> has_begun = false, had_turn = false;
  std::thread other([&] {
    while (!has_begun) std::this_thread::yield();
    store.read([](const Engine&) { return 0; });
    had_turn = true;
  });
  int num_steps = 0;
  store.change_in_steps([&](Engine&) {
    has_begun = true;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(300);
    while (std::chrono::steady_clock::now() < end) {
    }
    return ++num_steps < 3000 && !had_turn;
  });
  TENGEN_CHECK(num_steps < 3000);
  other.join();
}

// What a client had that goes with many batches comes back, whatever number of steps it takes.
void check_long_end() {
  const Folder folder("steps");
  constexpr uint32_t kItems = 8000, kBatch = 500;
  const Schema schema({{"x", "i8", {}, 0}}, 64);
  Store store(folder.path.string(), 1 << 20, 3);
  store.change([&](Engine& engine) { engine.add_pool(schema); });
  TableConfig config;
  config.name = "t";
  config.sampler = selector_of("fifo");
  config.max_times_sampled = 1;
  store.change([&](Engine& engine) { engine.add_table(config, 0); });
  Server server(&store);
  SlabFiles files;
  Writer writer(connect_writer(server, "a"), schema, files.map(store, folder.path), 1);
  const double one = 1.0;
  for (uint64_t i = 0; i < kItems; ++i) {
    const auto* column = reinterpret_cast<const std::byte*>(&i);
    TENGEN_CHECK(writer.append({&column, 1}, 1, in_time()) == 1);
    TENGEN_CHECK(writer.insert({0, i, i, 1, 1, 1, {&one, 1}}, in_time()));
  }
  TENGEN_CHECK(writer.flush(in_time()));
  auto ending = connect_sampler(server, 0, kBatch, 2);
  Delivery delivery;
  for (uint32_t i = 0; i < kItems / kBatch; ++i) TENGEN_CHECK(ending->next(in_time(), &delivery));
  const auto other = connect_sampler(server, 0, kItems, 0);
  TENGEN_CHECK(!other->next(kAtOnce, &delivery));
  ending.reset();
  TENGEN_CHECK(other->next(in_time(), &delivery) && delivery.keys.size() == kItems);
}

}  // namespace

int main() {
  check_turns();
  check_long_end();
  return 0;
}
