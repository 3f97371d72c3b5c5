// Tests of sessions over streams only.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "store/service/carriers_testing.h"
#include "store/session/messages.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

// If nobody samples, the store blocks its writer after a bounded number of bytes, and loses no data
// that it accepted.
void check_backpressure() {
  CarriedStore fixture(Carrier::kStream, 1 << 22);
  const uint32_t table = fixture.add_table(queue_of(1, 3));
  Writer writer = fixture.writer("a");
  int64_t num_inserted = 0;
  while (num_inserted < 2000 && append(writer, num_inserted, soon()) &&
         insert(writer, table, 1, soon())) {
    ++num_inserted;
  }
  TENGEN_CHECK(num_inserted > 3 && num_inserted < 2000);
  auto sampler = fixture.sampler(table, 1, 1);
  Delivery delivery;
  for (int64_t i = 0; i < num_inserted; ++i) {
    TENGEN_CHECK(next(*sampler, in_time(), &delivery));
    TENGEN_CHECK(values_of(fixture, delivery) == std::vector<int64_t>{i});
    sampler->ack(delivery.lease, {});
  }
}

// The store notices when a sampler that waits for items leaves, and when a writer that waits for
// samples leaves.
void check_death_while_waiting() {
  CarriedStore fixture(Carrier::kStream);
  const uint32_t table = fixture.add_table(queue_of(1, 1));
  Delivery delivery;
  {
    Writer writer = fixture.writer("a");
    for (int64_t i = 0; i < 3; ++i) {
      append(writer, i);
      TENGEN_CHECK(insert(writer, table, 1));
    }
    TENGEN_CHECK(!writer.flush(soon()));
    auto sampler = fixture.sampler(table, 3, 1);
    TENGEN_CHECK(!next(*sampler, soon(), &delivery));
  }
  TENGEN_CHECK(fixture.writer("a").next_sequence() == 1);
  auto sampler = fixture.sampler(table, 1, 0);
  TENGEN_CHECK(next(*sampler, in_time(), &delivery));
  TENGEN_CHECK(values_of(fixture, delivery) == std::vector<int64_t>{0});
}

// A session ends if the client inserts steps that it never sent, or sends an invalid message. The
// store continues to serve other clients.
void check_garbage() {
  CarriedStore fixture(Carrier::kStream);
  const uint32_t table = fixture.add_table(queue_of(1, 1e9));
  {
    Writer bad = fixture.writer("a");
    append(bad, 1);
    bad.insert({table, 0, 0, 9, 1, 1, {&kOne, 1}}, in_time());
    const std::string told = word_of([&] { bad.flush(in_time()); });
    TENGEN_CHECK(told.find("must be appended") != std::string::npos);
  }
  const InsertMessage many{
      .num_bytes = UINT32_MAX, .table = table, .count = UINT32_MAX, .stride = 1, .num_steps = 1};
  const Steps wide{.num_steps = 1000};
  const OfLease ack{.num_bytes = UINT32_MAX};
  std::array<uint32_t, 8> noise{};
  noise.fill(0xdeadbeef);
  const auto refused = [&](bool writes, const void* bytes, size_t num_bytes) {
    const auto [ours, theirs] = CarriedStore::streams();
    if (writes) {
      fixture.gateway->open_writer(theirs.descriptor, "a", 0, in_time());
    } else {
      fixture.gateway->open_sampler(theirs.descriptor, table, 1, 2);
    }
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
  auto sampler = fixture.sampler(table, 1, 0);
  Delivery delivery;
  TENGEN_CHECK(next(*sampler, in_time(), &delivery));
  TENGEN_CHECK(values_of(fixture, delivery) == std::vector<int64_t>{7});
}

// When a store closes, waiting clients receive an error.
void check_close() {
  CarriedStore fixture(Carrier::kStream);
  auto sampler = fixture.sampler(fixture.add_table(queue_of(1, 1e9)), 1, 1);
  TENGEN_CHECK(!sampler->next(soon()));
  fixture.store->close();
  const std::string told = word_of([&] { sampler->next(in_time()); });
  TENGEN_CHECK(told.find("is closed") != std::string::npos);
}

}  // namespace

int main() {
  check_backpressure();
  check_death_while_waiting();
  check_garbage();
  check_close();
  return 0;
}
