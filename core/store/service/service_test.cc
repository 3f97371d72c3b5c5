// Tests of sessions over every carrier.

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/service/carriers_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

// Overlapping items of several steps are sampled completely and in order.
void check_items(Carrier carrier) {
  CarriedStore fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of(3, 1e9));
  Writer writer = fixture.writer("a", 3);
  for (int64_t i = 0; i < 40; ++i) {
    append(writer, i);
    if (i >= 2) TENGEN_CHECK(insert(writer, table, 3));
  }
  TENGEN_CHECK(writer.flush(kNever) && writer.next_sequence() == 38);
  auto sampler = fixture.sampler(table, 2, 3);
  Delivery delivery;
  for (int64_t i = 0; i < 38; i += 2) {
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    const std::vector<int64_t> expected = {i, i + 1, i + 2, i + 1, i + 2, i + 3};
    TENGEN_CHECK(values_of(fixture, delivery) == expected);
    sampler->ack(delivery.lease, {});
  }
  TENGEN_CHECK(!next(*sampler, soon(), &delivery));
  TENGEN_CHECK(comes_to_wait(*sampler, "items must be inserted"));
}

// A run of many items is inserted as far as the rate limiter allows, and continues later. Repeating
// a call whose deadline expired inserts no item twice.
void check_limits(Carrier carrier) {
  CarriedStore fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of(1, 5));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 12; ++i) append(writer, i);
  const InsertRun run{table, 0, 0, 12, 1, 1, {&kOne, 1}};
  bool done = writer.insert(run, soon()) && writer.flush(soon());
  TENGEN_CHECK(!done);
  const std::string reason = "insert waits: 1 samples must be drawn first";
  TENGEN_CHECK(comes_to_wait(writer, reason));
  if (carrier == Carrier::kRing)
    TENGEN_CHECK(fixture.server->describe()[0] == "writer a: " + reason);
  if (carrier == Carrier::kStream) {
    TENGEN_CHECK(fixture.gateway->describe()[0] == "writer a: " + reason);
  }
  std::vector<int64_t> values;
  {
    auto sampler = fixture.sampler(table, 2, 1);
    Delivery delivery;
    for (int i = 0; i < 4; ++i) {
      TENGEN_CHECK(next(*sampler, kNever, &delivery));
      const std::vector<int64_t> two = values_of(fixture, delivery);
      values.insert(values.end(), two.begin(), two.end());
      sampler->ack(delivery.lease, {});
      if (carrier == Carrier::kCall) writer.insert(run, soon());
    }
    TENGEN_CHECK(writer.insert(run, kNever) && writer.flush(kNever));
    for (int i = 0; i < 2; ++i) {
      TENGEN_CHECK(next(*sampler, kNever, &delivery));
      const std::vector<int64_t> two = values_of(fixture, delivery);
      values.insert(values.end(), two.begin(), two.end());
      sampler->ack(delivery.lease, {});
    }
    TENGEN_CHECK(!next(*sampler, soon(), &delivery));
  }
  TENGEN_CHECK((values == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

// One call inserts many items with steps of many chunks; repeating the call inserts nothing.
void check_runs(Carrier carrier) {
  CarriedStore fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of(1, 1e9));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 30; ++i) append(writer, i);
  TENGEN_CHECK(insert(writer, table, 1));  // an item of the last step only
  TENGEN_CHECK(writer.flush(in_time()));
  const std::vector<double> priorities(6, 2.0);
  for (int64_t i = 30; i < 36; ++i) append(writer, i);
  const InsertRun run{table, writer.next_sequence(), 30, 6, 1, 1, priorities};
  TENGEN_CHECK(writer.insert(run, in_time()) && writer.insert(run, in_time()));
  TENGEN_CHECK(writer.flush(in_time()));
  auto sampler = fixture.sampler(table, 7, 0);
  Delivery delivery;
  TENGEN_CHECK(next(*sampler, in_time(), &delivery));
  const std::vector<int64_t> expected = {29, 30, 31, 32, 33, 34, 35};
  TENGEN_CHECK(values_of(fixture, delivery) == expected);
  TENGEN_CHECK(!next(*sampler, soon(), &delivery));
}

// If a sampler dies, its unused batches return to the table, whether it received them or not.
void check_death(Carrier carrier) {
  CarriedStore fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of(1, 1e9));
  {
    Writer writer = fixture.writer("a");
    for (int64_t i = 0; i < 10; ++i) {
      append(writer, i);
      TENGEN_CHECK(insert(writer, table, 1));
    }
    TENGEN_CHECK(writer.flush(kNever));
  }
  Delivery delivery;
  {
    auto sampler = fixture.sampler(table, 3, 2);
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    sampler->ack(delivery.lease, {});
    TENGEN_CHECK(next(*sampler, kNever, &delivery));  // items 3, 4 and 5 are never acknowledged
  }
  auto sampler = fixture.sampler(table, 7, 1);
  TENGEN_CHECK(next(*sampler, kNever, &delivery));
  const std::vector<int64_t> values = values_of(fixture, delivery);
  TENGEN_CHECK(
      (std::set<int64_t>(values.begin(), values.end()) == std::set<int64_t>{3, 4, 5, 6, 7, 8, 9}));
  // The next client with the writer's name continues after the last insert.
  Writer writer = fixture.writer("a");
  TENGEN_CHECK(writer.next_sequence() == 10);
}

// Acknowledgements are processed even if they follow a request that must wait. Here the waiting
// request needs a use that is acknowledged after it.
void check_order(Carrier carrier) {
  CarriedStore fixture(carrier);
  TableConfig config = queue_of(1, 1e9);
  config.max_times_sampled = 2;
  config.limits = {1e9, 1, -1e18, 1e18};
  const uint32_t table = fixture.add_table(config);
  Writer writer = fixture.writer("a");
  append(writer, 1);
  TENGEN_CHECK(insert(writer, table, 1) && writer.flush(kNever));
  auto sampler = fixture.sampler(table, 1, 4);
  Delivery delivery;
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    sampler->give_back(delivery.lease);
  }
  // The two returned batches can be sampled again, although more batches were requested before.
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    sampler->ack(delivery.lease, {});
  }
  TENGEN_CHECK(!next(*sampler, soon(), &delivery));
}

// One batch is sampled in advance, and an acknowledgement requests one more.
void check_ahead() {
  CarriedStore fixture(Carrier::kRing);
  const uint32_t table = fixture.add_table(queue_of(1, 1e9));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 12; ++i) {
    append(writer, i);
    TENGEN_CHECK(insert(writer, table, 1));
  }
  TENGEN_CHECK(writer.flush(kNever));
  const auto num_drawn = [&](uint64_t wished) {
    uint64_t drawn = 0;
    for (int i = 0; i < 2000 && drawn < wished; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      drawn = fixture.store->read(
          [&](const Engine& engine) { return engine.table(table).limiter().num_samples(); });
    }
    return drawn;
  };
  Delivery delivery;
  auto sampler = fixture.sampler(table, 2, 1);
  TENGEN_CHECK(next(*sampler, kNever, &delivery));
  TENGEN_CHECK(num_drawn(4) == 4);
  sampler->ack(delivery.lease, {});
  TENGEN_CHECK(num_drawn(6) == 6);
  for (int64_t i = 2; i < 6; i += 2) {
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    TENGEN_CHECK((values_of(fixture, delivery) == std::vector<int64_t>{i, i + 1}));
  }
  sampler = fixture.sampler(table, 2, 0);
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(next(*sampler, kNever, &delivery));
    sampler->ack(delivery.lease, {});
    TENGEN_CHECK(next(*sampler, soon(), &delivery));
    sampler->give_back(delivery.lease);
  }
}

// A rejected request ends only the client that sent it, with the engine's error message.
void check_refusals(Carrier carrier) {
  CarriedStore fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of(1, 1e9));
  Writer good = fixture.writer("good");
  {
    Writer bad = fixture.writer("bad");
    append(bad, 1);
    const double negative = -1.0;
    bad.insert({table, 0, 0, 1, 1, 1, {&negative, 1}}, kNever);
    for (int i = 0; i < 2; ++i) {
      TENGEN_CHECK(word_of([&] { bad.flush(kNever); }).find("priority") != std::string::npos);
    }
  }
  append(good, 2);
  TENGEN_CHECK(insert(good, table, 1) && good.flush(kNever));
  auto sampler = fixture.sampler(table, 1, 1);
  Delivery delivery;
  TENGEN_CHECK(next(*sampler, kNever, &delivery));
  TENGEN_CHECK(throws([&] {
    sampler->ack(delivery.lease + 1, {});
    next(*sampler, kNever, &delivery);
  }));
  TENGEN_CHECK(throws([&] { fixture.sampler(table, 0, 1); }));
  TENGEN_CHECK(throws([&] { fixture.sampler(table, 1, 5000); }));
  fixture.server.reset();
  fixture.gateway.reset();
  TENGEN_CHECK(throws([&] { insert(good, table, 1) && good.flush(kNever); }));
}

// With many concurrent writers and samplers, every item is used exactly once, and no client hangs.
void check_many(Carrier carrier) {
  CarriedStore fixture(carrier, 1 << 19);
  const uint32_t table = fixture.add_table(queue_of(1, 50));
  constexpr int kItems = 1998;  // a multiple of each batch size
  constexpr int kClients = 3;
  std::mutex mutex;
  std::map<int64_t, int> uses;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<Sampler>> samplers;
  for (int c = 0; c < kClients; ++c) {
    writers.emplace_back(new Writer(fixture.writer("w" + std::to_string(c))));
    samplers.push_back(fixture.sampler(table, 1 + static_cast<uint32_t>(c), 1));
  }
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      for (int64_t i = 0; i < kItems; ++i) {
        append(*writers[c], c * kItems + i);
        insert(*writers[c], table, 1);
      }
    });
    threads.emplace_back([&, c] {
      Delivery delivery;
      for (int i = 0; i < kItems; ++i) {
        next(*samplers[c], kNever, &delivery);
        const std::vector<int64_t> values = values_of(fixture, delivery);
        {
          const std::scoped_lock lock(mutex);
          for (const int64_t value : values) ++uses[value];
        }
        samplers[c]->ack(delivery.lease, {});
        if ((i + 1) * (c + 1) >= kItems) break;
      }
      samplers[c].reset();  // returns its unused batches, for which other samplers wait
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [value, count] : uses) TENGEN_CHECK(count == 1);
  TENGEN_CHECK(uses.size() == kClients * kItems);
}

}  // namespace

int main() {
  for (const Carrier carrier : kAllCarriers) {
    check_items(carrier);
    check_limits(carrier);
    check_runs(carrier);
    check_death(carrier);
    check_many(carrier);
  }
  for (const Carrier carrier : kRemoteCarriers) {
    check_order(carrier);
    check_refusals(carrier);
  }
  check_ahead();
  return 0;
}
