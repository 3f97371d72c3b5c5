#include "store/steps/staging.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "store/steps/staging_testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// A session that announces its batch size with expect().
constexpr SessionId kSampler = 1000;

// Chunks that fit into half of the memory are never saved; others are loaded with the same content.
void check_tiers() {
  SmallWorld world(32, 1000);
  const uint32_t table = world.engine.add_table(table_of("t", "fifo", 1000), 0);
  fill(world, table, 16);
  TENGEN_CHECK(world.tier.num_saves == 0 && world.tier.waiting.empty());
  SmallWorld large(32, 1000);
  large.engine.add_table(queue_of("t", 1000), 0);
  large.engine.expect(kSampler, 0, 8);
  fill(large, 0, 400);
  large.tier.end_all(large.rng, large.engine);
  TENGEN_CHECK(large.engine.table(0).size() == 400 && large.tier.num_saves >= 360);
  std::set<uint64_t> seen;
  const SessionId session = large.engine.begin_session();
  for (int i = 0; i < 50; ++i) {
    Loan loan;
    TENGEN_CHECK(large.engine.sample(session, 0, 8, &loan) && !loan.is_ready);
    TENGEN_CHECK(large.wait(&loan) == Collected::kReady);
    for (const uint64_t value : large.values(loan)) TENGEN_CHECK(seen.insert(value).second);
    large.engine.ack(session, loan.lease, {});
  }
  TENGEN_CHECK(seen.size() == 400 && large.tier.num_loads >= 360 && large.tier.num_loads <= 400);
}

// The least recently used chunk is evicted first, but never a chunk on loan.
void check_eviction() {
  SmallWorld world(8, 100);
  world.engine.add_table(table_of("t", "prioritized", 1000), 0);
  fill(world, 0, 60);
  world.tier.end_all(world.rng, world.engine);
  const SessionId session = world.engine.begin_session();
  const auto draw = [&](uint64_t number, Loan* loan) {
    // Serial numbers and slots are equal, because no item was removed.
    const int64_t key = key_of(static_cast<int64_t>(number), static_cast<uint32_t>(number));
    world.engine.table(0).set_priorities(std::vector{key}, std::vector{3e38});
    TENGEN_CHECK(world.engine.sample(session, 0, 1, loan));
    const uint64_t before = world.tier.num_loads;
    TENGEN_CHECK(world.wait(loan) == Collected::kReady);
    TENGEN_CHECK(world.values(*loan) == std::vector{number});
    world.engine.table(0).set_priorities(std::vector{key}, std::vector{0.0});
    return world.tier.num_loads - before;
  };
  const auto use = [&](uint64_t number) {
    Loan loan;
    const uint64_t num_loads = draw(number, &loan);
    world.engine.ack(session, loan.lease, {});
    return num_loads;
  };
  for (uint64_t i = 0; i < 7; ++i) use(i);
  TENGEN_CHECK(use(0) == 0 && use(1) == 0);
  use(20);
  use(21);
  TENGEN_CHECK(use(0) == 0 && use(1) == 0 && use(2) == 1);
  Loan held;
  draw(1, &held);
  for (uint64_t i = 30; i < 50; ++i) use(i);
  TENGEN_CHECK(world.values(held) == std::vector<uint64_t>{1} && use(1) == 0);
  world.engine.ack(session, held.lease, {});
  for (uint64_t i = 30; i < 50; ++i) use(i);
  TENGEN_CHECK(use(1) == 1);
}

// Two loans wait for the same load.
void check_shared_load() {
  SmallWorld world(8, 100, 4);
  world.engine.add_table(table_of("t", "fifo", 1000), 0);
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "a", 0).writer;
  for (uint64_t step = 0; step < 120; step += 4) {
    while (!world.append(writer, step)) world.tier.end_one(world.rng, world.engine);
    for (uint64_t i = step; i < step + 4; ++i) {
      world.engine.insert(writer, {0, i, i, 1, 1.0});
    }
    world.engine.release_before(writer, step);
  }
  world.tier.end_all(world.rng, world.engine);
  Loan one;
  Loan two;
  TENGEN_CHECK(world.engine.sample(session, 0, 1, &one));
  world.engine.table(0).erase(one.samples[0].key);
  TENGEN_CHECK(world.engine.sample(session, 0, 1, &two));
  TENGEN_CHECK(world.tier.waiting.size() == 1);
  TENGEN_CHECK(world.wait(&one) == Collected::kReady && world.wait(&two) == Collected::kReady);
  TENGEN_CHECK(world.values(one) == std::vector<uint64_t>{0});
  TENGEN_CHECK(world.values(two) == std::vector<uint64_t>{1});
  world.engine.ack(session, one.lease, {});
  world.engine.ack(session, two.lease, {});
}

// Unsaved chunks leave a part of the memory to loans, which depends on the batch size.
void check_unsaved() {
  for (const uint32_t batch : {1u, 9u}) {
    SmallWorld world(16, 100);
    world.engine.add_table(table_of("t", "fifo", 1000), 0);
    world.engine.expect(kSampler, 0, batch);
    const SessionId session = world.engine.begin_session();
    const uint32_t writer = world.engine.open_writer(session, "a", 0).writer;
    uint64_t count = 0;
    while (world.append(writer, count)) ++count;
    TENGEN_CHECK(count == (batch == 1 ? 12 : 7));
    TENGEN_CHECK(world.engine.grant_waits(writer) ==
                 "writer waits: memory is full of steps not yet on disk");
    world.tier.end_all(world.rng, world.engine);
    TENGEN_CHECK(world.append(writer, count).has_value());
  }
}

// Memory is reserved while a session samples batches of the announced size. Meanwhile each writer
// gets one chunk to fill, however little memory remains.
void check_reserve_ends() {
  SmallWorld world(16, 100, 4);
  Engine& engine = world.engine;
  engine.add_table(table_of("t", "fifo", 1000), 0);
  const SessionId sampler = engine.begin_session();
  engine.expect(sampler, 0, 15);
  std::vector<uint32_t> writers;
  for (const char* name : {"a", "b", "c", "d"}) {
    writers.push_back(engine.open_writer(engine.begin_session(), name, 0).writer);
  }
  for (const uint32_t writer : writers) TENGEN_CHECK(engine.grant(writer).has_value());
  for (const uint32_t writer : writers) TENGEN_CHECK(!engine.grant(writer));
  const SessionId other = engine.begin_session();
  engine.expect(other, 0, 2);
  TENGEN_CHECK(!engine.end_session(other) && !engine.grant(writers[0]));
  TENGEN_CHECK(!engine.end_session(sampler));
  uint64_t num_more = 0;
  while (engine.grant(writers[0])) ++num_more;
  TENGEN_CHECK(num_more == 12 - writers.size());
}

// If loans fill the memory, the next loan waits, while a writer can continue.
void check_full_memory() {
  SmallWorld world(8, 1000);
  world.engine.add_table(queue_of("t", 1000), 0);
  world.engine.expect(kSampler, 0, 3);
  const uint32_t writer = fill(world, 0, 300);
  world.tier.end_all(world.rng, world.engine);
  const SessionId session = world.engine.begin_session();
  std::vector<Loan> loans(2);
  for (Loan& loan : loans) {
    TENGEN_CHECK(world.engine.sample(session, 0, 3, &loan));
    TENGEN_CHECK(world.wait(&loan) == Collected::kReady);
  }
  Loan third;
  Loan fourth;
  TENGEN_CHECK(world.engine.sample(session, 0, 3, &third));
  TENGEN_CHECK(world.wait(&third) == Collected::kNotYet);
  TENGEN_CHECK(!world.engine.sample(session, 0, 3, &fourth));
  // The loan is retried when more memory is available, not in every call.
  const uint64_t num_reserved = world.tier.num_reserved;
  for (int i = 0; i < 5; ++i) world.engine.advance(0);
  TENGEN_CHECK(world.engine.collect(&third) == Collected::kNotYet);
  TENGEN_CHECK(world.tier.num_reserved == num_reserved);
  TENGEN_CHECK(world.engine.sample_waits(0, 3) ==
               "sample waits: memory is held by writers and batches on loan");
  std::vector<uint64_t> held = world.values(loans[0]);
  TENGEN_CHECK(world.append(writer, 300).has_value());
  TENGEN_CHECK(world.engine.table(0).size() == 300);  // no item was removed to make space
  TENGEN_CHECK(world.values(loans[0]) == held);
  world.engine.ack(session, loans[0].lease, {});
  world.engine.ack(session, loans[1].lease, {});
  TENGEN_CHECK(world.wait(&third) == Collected::kReady);
  // A batch counts once, however often its loan was retried.
  TENGEN_CHECK(world.num_reads(0) == 9);
  // A session that ends while its batch is being loaded returns the batch.
  const uint64_t num_samples = world.engine.table(0).limiter().num_samples();
  const SessionId dying = world.engine.begin_session();
  TENGEN_CHECK(world.engine.sample(dying, 0, 3, &fourth));
  TENGEN_CHECK(world.engine.table(0).limiter().num_samples() == num_samples + 3);
  world.engine.end_session(dying);
  TENGEN_CHECK(world.engine.table(0).limiter().num_samples() == num_samples);
  world.tier.end_all(world.rng, world.engine);
  TENGEN_CHECK(world.num_reads(0) == 9);
}

// If the disk is full, because of its budget or according to the system, the removers free space,
// and writers and samplers continue.
void check_full_disk(bool by_system) {
  SmallWorld world(16, by_system ? 1000 : 40);
  if (by_system) world.tier.max_rows = 40;
  world.engine.add_table(table_of("t", "uniform", 1000), 0);
  world.engine.expect(kSampler, 0, 4);
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "a", 0).writer;
  Loan loan;
  for (uint64_t i = 0; i < 2000; ++i) {
    while (!world.append(writer, i)) {
      TENGEN_CHECK(!world.tier.waiting.empty());
      world.tier.end_one(world.rng, world.engine);
    }
    world.engine.insert(writer, {0, i, i, 1, 1.0});
    world.engine.release_before(writer, i + 1);
    if (i % 7 != 0 || !world.engine.sample(session, 0, std::min<uint32_t>(4, 1 + i), &loan))
      continue;
    TENGEN_CHECK(world.wait(&loan) == Collected::kReady);
    for (size_t k = 0; k < loan.samples.size(); ++k) {
      TENGEN_CHECK(world.values(loan)[k] == loan.samples[k].steps.first);
    }
    world.engine.ack(session, loan.lease, {});
  }
  const uint64_t size = world.engine.table(0).size();
  TENGEN_CHECK(size > 40 && size <= 56);
  TENGEN_CHECK(world.disk.used_bytes() <= 40 * kSlot);
}

// If a loan needs more memory than writers left, and the disk is full, items are removed.
void check_room_for_loans() {
  TableConfig config = table_of("queue", "fifo", 1000);
  config.max_times_sampled = 1;
  config.limits = {1.0, 1, 0.0, 1e18};
  SmallWorld queue(16, 12);
  queue.engine.add_table(config, 0);
  fill(queue, 0, 24);
  queue.tier.end_all(queue.rng, queue.engine);
  queue.engine.expect(kSampler, 0, 10);
  Loan loan;
  const SessionId other = queue.engine.begin_session();
  TENGEN_CHECK(queue.engine.sample(other, 0, 10, &loan));
  TENGEN_CHECK(queue.wait(&loan) == Collected::kReady);
  std::vector<uint64_t> expected(10);
  std::iota(expected.begin(), expected.end(), uint64_t{0});
  TENGEN_CHECK(queue.values(loan) == expected && queue.engine.table(0).size() < 24);
}

// Items in unreadable rows are removed, and other items are sampled instead.
void check_damage() {
  SmallWorld world(8, 1000);
  world.engine.add_table(table_of("t", "fifo", 1000), 0);
  fill(world, 0, 100);
  world.tier.end_all(world.rng, world.engine);
  const SessionId session = world.engine.begin_session();
  for (const auto& [row, bytes] : *world.tier.rows) {
    uint64_t first;
    std::memcpy(&first, bytes.data(), sizeof first);
    if (first < 3) world.tier.bad.insert(row);
  }
  Loan loan;
  for (uint64_t expected = 0; expected < 3; ++expected) {
    TENGEN_CHECK(world.engine.sample(session, 0, 2, &loan));
    TENGEN_CHECK(world.wait(&loan) == Collected::kLost);
    world.tier.end_all(world.rng, world.engine);
    TENGEN_CHECK(world.engine.num_damaged(0) > 0 && world.engine.num_damaged(0) <= 3);
    TENGEN_CHECK(world.engine.table(0).size() == 100 - world.engine.num_damaged(0));
    TENGEN_CHECK(world.engine.table(0).limiter().num_samples() == 0);
    if (world.engine.num_damaged(0) == 3) break;
  }
  TENGEN_CHECK(world.engine.sample(session, 0, 2, &loan));
  TENGEN_CHECK(world.wait(&loan) == Collected::kReady);
  TENGEN_CHECK(world.values(loan) == (std::vector<uint64_t>{3, 3}));
}

void check_refusals() {
  const auto make = [](uint64_t num_slots, uint64_t num_rows) {
    return throws([&] { SmallWorld(num_slots, num_rows); });
  };
  TENGEN_CHECK(make(1, 10) && !make(2, 10) && !make(2, 1));
  MockTier tier;
  Memory memory("", 10 * kSlot);
  Disk none(&tier, kSlot - 1);
  Engine engine(&memory, 0, nullptr, &none);
  TENGEN_CHECK(throws([&] { engine.add_pool(Schema({{"x", "u8", {}, 0}}, 1)); }));
  SmallWorld world(4, 10);
  TableConfig config = table_of("long", "fifo", 10);
  config.num_steps = 4;
  TENGEN_CHECK(throws([&] { world.engine.add_table(config, 0); }));
  // A second schema would halve the part of the first one.
  SmallWorld parted(4, 10);
  config.num_steps = 3;
  parted.engine.add_table(config, 0);
  TENGEN_CHECK(throws([&] { parted.engine.add_pool(Schema({{"y", "u8", {}, 0}}, 1)); }));
}

// Random clients of a small memory with a disk and of a large memory without one sample the same
// items with the same steps, whatever the order in which transfers end.
void check_random(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  const uint32_t length = 1 + rng.below(3);
  SmallWorld small(24, 5000, length);
  SmallWorld large(0, 0, length);
  const char* const samplers[] = {"fifo", "uniform", "prioritized"};
  for (SmallWorld* world : {&small, &large}) {
    for (const char* sampler : samplers) {
      TableConfig config = table_of(sampler, sampler, 150);
      config.max_times_sampled = sampler[0] == 'u' ? 0 : 2;
      config.num_steps = sampler[0] == 'u' ? 2 : 1;
      world->engine.add_table(config, 0);
    }
  }
  for (uint32_t table = 0; table < 3; ++table) small.engine.expect(kSampler, table, 3);
  struct Client {
    SessionId session;
    uint32_t writer;
    uint64_t base;
    uint64_t sequence = 0;
    uint64_t num_steps = 0;
    std::deque<std::pair<Loan, Loan>> drawn;  // loans of both worlds
    std::deque<std::pair<uint64_t, uint64_t>> lent;
  };
  std::vector<Client> clients;
  uint64_t num_clients = 0;
  const auto ack = [&](Client& client) {
    const auto [a, b] = client.lent.front();
    client.lent.pop_front();
    if (rng.below(3) == 0) {
      small.engine.give_back(client.session, a);
      large.engine.give_back(client.session, b);
    } else {
      small.engine.ack(client.session, a, {});
      large.engine.ack(client.session, b, {});
    }
  };
  for (int round = 0; round < 4000; ++round) {
    while (!small.tier.waiting.empty() && rng.below(3) == 0) small.tier.end_one(rng, small.engine);
    if (clients.size() < 3 && rng.below(8) == 0) {
      const std::string name = "w" + std::to_string(num_clients);
      const SessionId session = small.engine.begin_session();
      TENGEN_CHECK(large.engine.begin_session() == session);
      const uint32_t writer = small.engine.open_writer(session, name, 0).writer;
      TENGEN_CHECK(large.engine.open_writer(session, name, 0).writer == writer);
      clients.push_back({session, writer, ++num_clients << 32, 0, 0, {}, {}});
      continue;
    }
    if (clients.empty()) continue;
    Client& client = clients[rng.below(static_cast<uint32_t>(clients.size()))];
    const uint32_t action = rng.below(20);
    if (action < 8) {
      if (!small.append(client.writer, client.base + client.num_steps)) continue;
      TENGEN_CHECK(large.append(client.writer, client.base + client.num_steps).has_value());
      client.num_steps += length;
    } else if (action < 13) {
      const uint32_t table = rng.below(3);
      const uint64_t back = 2 + rng.below(3);
      if (client.num_steps < back) continue;
      const Insert insert{table, client.sequence++, client.num_steps - back, 2,
                          static_cast<double>(rng.below(50))};
      InsertResult result{};
      const bool refused = throws([&] { result = small.engine.insert(client.writer, insert); });
      InsertResult other{};
      TENGEN_CHECK(throws([&] { other = large.engine.insert(client.writer, insert); }) == refused);
      TENGEN_CHECK(result == other);
      const uint64_t kept = client.num_steps - std::min<uint64_t>(client.num_steps, 4);
      small.engine.release_before(client.writer, kept);
      large.engine.release_before(client.writer, kept);
    } else if (action < 16) {
      const uint32_t table = rng.below(3);
      const uint32_t count = 1 + rng.below(3);
      std::pair<Loan, Loan> loans;
      if (!small.engine.sample(client.session, table, count, &loans.first)) continue;
      TENGEN_CHECK(large.engine.sample(client.session, table, count, &loans.second));
      for (uint32_t i = 0; i < count; ++i) {
        TENGEN_CHECK(loans.first.samples[i].key == loans.second.samples[i].key);
      }
      client.drawn.push_back(std::move(loans));
    } else if (action < 18 && !client.drawn.empty()) {
      auto& [a, b] = client.drawn.front();
      const Collected collected = small.engine.collect(&a);
      TENGEN_CHECK(collected != Collected::kLost);
      if (collected == Collected::kNotYet) {
        if (!client.lent.empty()) ack(client);
        continue;
      }
      TENGEN_CHECK(small.values(a) == large.values(b));
      client.lent.push_back({a.lease, b.lease});
      client.drawn.pop_front();
    } else if (action == 18 && !client.lent.empty()) {
      ack(client);
    } else if (action == 19 && rng.below(12) == 0) {
      small.engine.end_session(client.session);
      large.engine.end_session(client.session);
      clients.erase(clients.begin() + (&client - clients.data()));
    }
    for (uint32_t table = 0; table < 3; ++table) {
      TENGEN_CHECK(small.engine.table(table).size() == large.engine.table(table).size());
    }
  }
  TENGEN_CHECK(small.tier.num_loads > 20 && small.tier.num_saves > 100);
  // All memory is free at the end.
  for (Client& client : clients) small.engine.end_session(client.session);
  for (uint32_t table = 0; table < 3; ++table) {
    small.engine.table(table).set_capacity(1, 1 << 20);
    TENGEN_CHECK(!small.engine.table(table).remove_some());
  }
  small.tier.end_all(rng, small.engine);
  TENGEN_CHECK(small.engine.pool(0).streams().num_chunks() <= 6);
}

}  // namespace

int main() {
  check_tiers();
  check_eviction();
  check_shared_load();
  check_unsaved();
  check_reserve_ends();
  check_full_memory();
  check_room_for_loans();
  for (const bool by_system : {false, true}) check_full_disk(by_system);
  check_damage();
  check_refusals();
  for (uint64_t seed = 0; seed < 40; ++seed) check_random(seed);
  return 0;
}
