#pragma once
// Stores of numbers on disks, for tests of data that survives a host crash.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "store/clients/writer.h"
#include "store/service/checkpointer.h"
#include "store/service/service_testing.h"

namespace tengen::store {

constexpr uint64_t kNumberSlots = 64;

// Creates a store with one queue of numbers. A chunk is one page with four numbers.
inline std::unique_ptr<Store> make_numbers(const Folder& folder, Durability durability,
                                           uint64_t num_rows = 1 << 12,
                                           Resumed* resumed = nullptr) {
  using engine::Disk;
  engine::TableConfig config;
  config.name = "queue";
  config.sampler = engine::selector_of("fifo");
  config.max_times_sampled = 1;
  config.max_items = 1 << 20;
  auto store = store_of("", kNumberSlots * Disk::kAlignment,
                        engine::Schema({{"x", "i8", {}, 0}, {"y", "u1", {1000}, 0}}, 4), config,
                        DiskConfig{folder.path, num_rows * Disk::kAlignment, durability,
                                   std::chrono::milliseconds(1)});
  const Resumed how = store->keep(false);
  if (resumed != nullptr) *resumed = how;
  return store;
}

// A writer of consecutive numbers, which starts at the next sequence number of its name.
struct NumberWriter {
  explicit NumberWriter(Store* of)
      : store(of),
        writer(of->open_writer("a", 0),
               of->read([](const engine::Engine& engine) { return engine.pool(0).schema(); }),
               of->slab_map(0), 1),
        next(static_cast<int64_t>(writer.next_sequence())) {}

  void insert(int count = 1) {
    for (int i = 0; i < count; ++i, ++next) {
      const std::vector<uint8_t> y(1000, static_cast<uint8_t>(next));
      const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&next),
                                    reinterpret_cast<const std::byte*>(y.data())};
      const double priority = 1.0;
      TENGEN_CHECK(writer.append(columns, 1, in_time()) == 1);
      TENGEN_CHECK(writer.insert(
          {0, writer.next_sequence(), writer.num_steps() - 1, 1, 1, 1, {&priority, 1}}, in_time()));
    }
  }
  void checkpoint() const {
    TENGEN_CHECK(store->checkpointer()->wait(store->checkpointer()->ask(), in_time()));
  }

  Store* const store;
  Writer writer;
  int64_t next;
};

inline std::vector<int64_t> range(int64_t first, int64_t end) {
  std::vector<int64_t> numbers;
  for (int64_t i = first; i < end; ++i) numbers.push_back(i);
  return numbers;
}

// Samples and acknowledges the oldest numbers, at most `most` of them. Returns them.
inline std::vector<int64_t> use_numbers(Store& store, uint64_t most = UINT64_MAX) {
  std::vector<int64_t> numbers;
  const auto sampler = open_sampler(store, 0, 1, 2);
  const auto is_left = [&] {
    return store.read([](const engine::Engine& engine) { return engine.table(0).size() > 0; });
  };
  const Deadline end = in_time();
  // Checks is_left(), because sampling removes damaged items, so a sample may never arrive.
  while (numbers.size() < most && is_left()) {
    TENGEN_CHECK(std::chrono::steady_clock::now() < end);
    Delivery delivery;
    if (!next(*sampler, std::chrono::steady_clock::now() + std::chrono::milliseconds(100),
              &delivery)) {
      continue;
    }
    int64_t number;
    std::memcpy(&number, delivery.data.get(), 8);
    TENGEN_CHECK(delivery.data.get()[sampler->offsets()[1] + 999] ==
                 static_cast<std::byte>(number));
    numbers.push_back(number);
    sampler->ack(delivery.lease, {});
  }
  return numbers;
}

}  // namespace tengen::store
