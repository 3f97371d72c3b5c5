#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/testing.h"
#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/net/batch_parts.h"
#include "store/net/gateway.h"
#include "store/service/store.h"
#include "store/session/messages.h"
#include "store/session/stream_channel.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

const Deadline kNever = Deadline::max();
Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); }
// As long as a failing test may take, so that one that would hang ends.
Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

constexpr uint32_t kStepsPerChunk = 4;
// Small and large pieces take different ways.
constexpr uint32_t kLarge = 3000;

Schema schema() {
  return Schema({{"x", "i8", {}, 0}, {"y", "u1", {kLarge}, 0}, {"z", "u1", {3}, 0}},
                kStepsPerChunk);
}

struct Step {
  int64_t x = 0;
  std::array<uint8_t, kLarge> y{};
  std::array<uint8_t, 3> z{};
  explicit Step(int64_t value = 0) : x(value) {
    y.fill(static_cast<uint8_t>(value * 7));
    z.fill(static_cast<uint8_t>(value * 3));
  }
};

TableConfig queue_of(const std::string& name, uint32_t num_steps, double max_ahead) {
  TableConfig config;
  config.name = name;
  config.sampler = selector_of("fifo");
  config.limits = {1.0, 1, 0.0, max_ahead};
  config.max_times_sampled = 1;
  config.num_steps = num_steps;
  return config;
}

struct Fixture {
  explicit Fixture(uint64_t memory_bytes = 1 << 20) : store("", memory_bytes, 3) {
    store.change([](Engine& engine) { engine.add_pool(schema()); });
    gateway.emplace(&store);
  }

  uint32_t add_table(const TableConfig& config) {
    return store.change([&](Engine& engine) { return engine.add_table(config, 0); });
  }
  // A connected stream: the client's end, and the gateway's.
  static std::array<int, 2> streams() {
    std::array<int, 2> ends{};
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    return ends;
  }
  Writer writer(const std::string& name, uint32_t max_item_steps = 1) {
    const auto [ours, theirs] = streams();
    const uint64_t next_sequence = gateway->open_writer(theirs, name, 0, in_time());
    ::close(theirs);
    auto channel = std::make_unique<StreamChannel>(StreamAddress{ours, "test"});
    return Writer({std::move(channel), next_sequence}, schema(), max_item_steps);
  }
  Sampler sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead,
                  uint32_t num_steps = 1) {
    const auto [ours, theirs] = streams();
    const bool is_refused = throws([&] { gateway->open_sampler(theirs, table, num_samples, 2); });
    ::close(theirs);
    if (is_refused) {
      ::close(ours);
      throw Error("refused");
    }
    const BatchLayout layout(schema(), num_samples, num_steps);
    auto channel =
        std::make_unique<StreamChannel>(StreamAddress{ours, "test"}, num_samples, layout.num_bytes);
    return Sampler(std::make_unique<SamplerPort>(std::move(channel), num_ahead), schema(),
                   SlabMap::none(), num_samples, num_steps);
  }

  Store store;
  std::optional<Gateway> gateway;
};

void append(Writer& writer, int64_t value) {
  const Step step(value);
  const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&step.x),
                                reinterpret_cast<const std::byte*>(step.y.data()),
                                reinterpret_cast<const std::byte*>(step.z.data())};
  TENGEN_CHECK(writer.append(columns, 1, in_time()) == 1);
}

const double kOne = 1.0;

bool insert(Writer& writer, uint32_t table, uint32_t num_steps, Deadline deadline = kNever) {
  return writer.insert(
      {table, writer.next_sequence(), writer.num_steps() - num_steps, 1, 1, num_steps, {&kOne, 1}},
      deadline);
}

// The values of a batch, of which every column and byte must tell the same.
std::vector<int64_t> values_of(const Sampler& sampler, const Gathered& batch) {
  const uint32_t count = sampler.num_samples() * sampler.num_steps();
  std::vector<int64_t> x(count);
  std::memcpy(x.data(), batch.data.get() + sampler.offsets()[0], count * sizeof(int64_t));
  for (uint32_t i = 0; i < count; ++i) {
    const Step step(x[i]);
    const std::byte* y = batch.data.get() + sampler.offsets()[1] + i * step.y.size();
    const std::byte* z = batch.data.get() + sampler.offsets()[2] + i * step.z.size();
    TENGEN_CHECK(std::memcmp(y, step.y.data(), step.y.size()) == 0);
    TENGEN_CHECK(std::memcmp(z, step.z.data(), step.z.size()) == 0);
  }
  return x;
}

std::vector<int64_t> next_values(Sampler& sampler, bool acks = true) {
  const std::optional<Gathered> batch = sampler.next(in_time());
  TENGEN_CHECK(batch.has_value());
  if (acks) sampler.port().ack(batch->delivery.lease, {});
  return values_of(sampler, *batch);
}

// Whole items, in order, also where they overlap and lie across chunks.
void check_items() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 3, 1e9));
  Writer writer = fixture.writer("a", 3);
  for (int64_t i = 0; i < 40; ++i) {
    append(writer, i);
    if (i >= 2) TENGEN_CHECK(insert(writer, table, 3));
  }
  TENGEN_CHECK(writer.flush(in_time()) && writer.next_sequence() == 38);
  for (const uint32_t num_ahead : {0u, 2u}) {
    Sampler sampler = fixture.sampler(table, 2, num_ahead, 3);
    for (int64_t i = num_ahead == 0 ? 0 : 18; i < (num_ahead == 0 ? 18 : 38); i += 2) {
      const std::vector<int64_t> expected = {i, i + 1, i + 2, i + 1, i + 2, i + 3};
      TENGEN_CHECK(next_values(sampler) == expected);
    }
  }
  Sampler sampler = fixture.sampler(table, 2, 0, 3);
  TENGEN_CHECK(!sampler.next(soon()));
  std::string waits;
  for (int i = 0; i < 1000 && waits.find("items must be inserted") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    waits = sampler.port().waits();
  }
  TENGEN_CHECK(waits.find("items must be inserted") != std::string::npos);
}

// Steps of many chunks and items in one call.
void check_runs() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 30; ++i) append(writer, i);
  TENGEN_CHECK(insert(writer, table, 1));  // holds the last step alone
  TENGEN_CHECK(writer.flush(in_time()));
  const std::vector<double> priorities(6, 2.0);
  for (int64_t i = 30; i < 36; ++i) append(writer, i);
  const InsertRun run{table, writer.next_sequence(), 30, 6, 1, 1, priorities};
  TENGEN_CHECK(writer.insert(run, in_time()) && writer.insert(run, in_time()));
  TENGEN_CHECK(writer.flush(in_time()));
  Sampler sampler = fixture.sampler(table, 7, 0);
  TENGEN_CHECK((next_values(sampler) == std::vector<int64_t>{29, 30, 31, 32, 33, 34, 35}));
  TENGEN_CHECK(!sampler.next(soon()));
}

// A store that stands still holds its writer back after a bounded number of bytes, and loses none
// of what it took.
void check_backpressure() {
  Fixture fixture(1 << 22);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 3));
  Writer writer = fixture.writer("a");
  int64_t num_inserted = 0;
  while (num_inserted < 2000) {
    const Step step(num_inserted);
    const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&step.x),
                                  reinterpret_cast<const std::byte*>(step.y.data()),
                                  reinterpret_cast<const std::byte*>(step.z.data())};
    if (writer.append(columns, 1, soon()) == 0 || !insert(writer, table, 1, soon())) break;
    ++num_inserted;
  }
  TENGEN_CHECK(num_inserted > 3 && num_inserted < 2000);
  Sampler sampler = fixture.sampler(table, 1, 1);
  for (int64_t i = 0; i < num_inserted; ++i) {
    TENGEN_CHECK(next_values(sampler) == std::vector<int64_t>{i});
  }
}

// A sampler that waits for items is noticed when it goes, and so is a writer that waits for
// samples.
void check_death_while_waiting() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1));
  {
    Writer writer = fixture.writer("a");
    for (int64_t i = 0; i < 3; ++i) {
      append(writer, i);
      TENGEN_CHECK(insert(writer, table, 1));
    }
    TENGEN_CHECK(!writer.flush(soon()));
    Sampler sampler = fixture.sampler(table, 3, 1);
    TENGEN_CHECK(!sampler.next(soon()));
  }
  const uint64_t next_sequence = fixture.writer("a").next_sequence();
  TENGEN_CHECK(next_sequence == 1);
  Sampler sampler = fixture.sampler(table, 1, 0);
  TENGEN_CHECK(next_values(sampler) == std::vector<int64_t>{0});
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What is refused ends its own client, with the store's words, at every later call, and no other.
void check_refusals() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  Writer good = fixture.writer("good");
  {
    Writer bad = fixture.writer("bad");
    append(bad, 1);
    const double negative = -1.0;
    bad.insert({table, 0, 0, 1, 1, 1, {&negative, 1}}, in_time());
    for (int i = 0; i < 2; ++i) {
      const std::string told = error_of([&] { bad.flush(in_time()); });
      TENGEN_CHECK(told.find("priority") != std::string::npos);
    }
  }
  {
    // Steps that were never sent are another's bytes.
    Writer bad = fixture.writer("bad");
    append(bad, 1);
    bad.insert({table, 0, 0, 9, 1, 1, {&kOne, 1}}, in_time());
    const std::string told = error_of([&] { bad.flush(in_time()); });
    TENGEN_CHECK(told.find("must be appended") != std::string::npos);
  }
  append(good, 2);
  TENGEN_CHECK(insert(good, table, 1) && good.flush(in_time()));
  Sampler sampler = fixture.sampler(table, 1, 0);
  const std::optional<Gathered> batch = sampler.next(in_time());
  TENGEN_CHECK(batch.has_value());
  const std::string told = error_of([&] {
    sampler.port().ack(batch->delivery.lease + 1, {});
    sampler.next(in_time());
  });
  TENGEN_CHECK(told.find("lease") != std::string::npos);
  TENGEN_CHECK(throws([&] { fixture.sampler(table, 0, 1); }));
  fixture.gateway.reset();
  TENGEN_CHECK(error_of([&] {
                 append(good, 3);
                 insert(good, table, 1);
                 good.flush(in_time());
               }).find("has ended, or has closed this client") != std::string::npos);
}

// Bytes that are no message of the session end it; the store serves on.
void check_garbage() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  const InsertMessage many{
      .num_bytes = UINT32_MAX, .table = table, .count = UINT32_MAX, .stride = 1, .num_steps = 1};
  const Steps wide{.num_steps = 1000};
  const OfLease ack{.num_bytes = UINT32_MAX};
  std::array<uint32_t, 8> noise{};
  noise.fill(0xdeadbeef);
  const auto refused = [&](bool writes, const void* bytes, size_t num_bytes) {
    const auto [ours, theirs] = Fixture::streams();
    if (writes) {
      fixture.gateway->open_writer(theirs, "a", 0, in_time());
    } else {
      fixture.gateway->open_sampler(theirs, table, 1, 2);
    }
    ::close(theirs);
    transport::StreamSocket socket{transport::Connection(ours)};
    iovec part = transport::part_of(bytes, num_bytes);
    TENGEN_CHECK(socket.send({&part, 1}));
    Text reply;
    return socket.read(&reply, sizeof reply) && reply.kind == Reply::kError;
  };
  TENGEN_CHECK(refused(true, &many, sizeof many));
  TENGEN_CHECK(refused(true, &wide, sizeof wide));
  TENGEN_CHECK(refused(false, &ack, sizeof ack));
  TENGEN_CHECK(refused(true, noise.data(), sizeof noise));
  TENGEN_CHECK(refused(false, noise.data(), sizeof noise));
  Writer writer = fixture.writer("a");
  append(writer, 7);
  TENGEN_CHECK(insert(writer, table, 1) && writer.flush(in_time()));
  Sampler sampler = fixture.sampler(table, 1, 0);
  TENGEN_CHECK(next_values(sampler) == std::vector<int64_t>{7});
}

// A store that closes tells those who wait.
void check_close() {
  Fixture fixture;
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  Sampler sampler = fixture.sampler(table, 1, 1);
  TENGEN_CHECK(!sampler.next(soon()));
  fixture.store.close();
  const std::string told = error_of([&] { sampler.next(in_time()); });
  TENGEN_CHECK(told.find("is closed") != std::string::npos);
}

}  // namespace

int main() {
  check_items();
  check_runs();
  check_backpressure();
  check_death_while_waiting();
  check_refusals();
  check_garbage();
  check_close();
  return 0;
}
