#include "store/session/host_session.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/testing.h"
#include "store/session/messages.h"
#include "store/session/ring_channel.h"
#include "store/session/ring_memory.h"
#include "transport/shared_memory.h"

using namespace tengen;
using namespace tengen::store;

namespace {

// A server that goes on takes over the memory of its sessions: also one that the server before was
// killed over, which no client has; but none of another version.
void check_versions_of_memory() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  const SessionLayout layout{4096, 4096};
  const SessionRecord record{SessionRecord::Kind::kWriter, 0, 0, layout, 0, "writer a"};
  const engine::SessionProgress progress{};
  for (const uint32_t version : {0u, kRingVersion, kRingVersion + 1}) {
    const std::string path = folder + "/session";
    {
      const auto memory = transport::SharedMemory::create(path, layout.num_bytes());
      reinterpret_cast<SessionHeader*>(memory.data())->version.store(version);
    }
    const bool is_refused = throws([&] {
      const HostSession session(1, record, path, &progress);
      TENGEN_CHECK(!session.is_taken() && !session.is_over());
    });
    TENGEN_CHECK(is_refused == (version > kRingVersion));
    if (!is_refused) continue;  // the memory has left with its session
    const auto memory = transport::SharedMemory::open(path, layout.num_bytes());
    const auto* const header = reinterpret_cast<const SessionHeader*>(memory.data());
    TENGEN_CHECK(header->version.load() == version);
    std::filesystem::remove(path);
  }
  std::filesystem::remove_all(folder);
}

// However much a client asks for at once, one round of its session touches the items of two batches
// of the largest at most, so that others need not wait for all of it.
void check_rounds_of_large_batches() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  engine::Memory memory("", uint64_t{1} << 28);  // the test uses one step
  engine::Engine engine(&memory, 0);
  engine.add_pool(engine::Schema({{"x", "u1", {64}, 0}}, 1));
  engine::TableConfig config;
  config.name = "t";
  const uint32_t table = engine.add_table(config, 0);
  const engine::SessionId id = engine.begin_session();
  const uint32_t writer = engine.open_writer(id, "a", 0).writer;
  engine.append(writer, *engine.grant(writer));
  engine.insert(writer, {table, 0, 0, 1, 1.0});

  constexpr uint64_t kNumBatches = 4;
  const SessionLayout layout = layout_of_sampler(engine, table, engine::kMaxSamples, 2);
  const std::string path = folder + "/session";
  HostSession session(
      id, {SessionRecord::Kind::kSampler, table, engine::kMaxSamples, layout, 0, ""}, path);
  RingChannel client({-1, path, layout});
  for (uint64_t i = 0; i < kNumBatches; ++i) {
    TENGEN_CHECK(client.send_one(SampleMessage(), kAtOnce, Urgency::kLater));
  }
  for (uint64_t i = 0; i < kNumBatches; ++i) {
    TENGEN_CHECK(session.serve(engine) == Progress::kDone);
    session.publish(0);
    TENGEN_CHECK(engine.num_loans(id) == i + 1);
  }
  TENGEN_CHECK(session.serve(engine) == Progress::kNone);
  for (uint64_t i = 0; i < kNumBatches; ++i) {
    TENGEN_CHECK(client.send_one(OfLease{.lease = i}, kAtOnce, Urgency::kLater));
  }
  for (uint64_t i = 0; i < kNumBatches; ++i) {
    TENGEN_CHECK(session.serve(engine) == Progress::kDone);
    TENGEN_CHECK(engine.num_loans(id) == kNumBatches - i - 1);
  }
  std::filesystem::remove_all(folder);
}

// One message may insert many items, each of many chunks: its cost is that of all these chunks, and
// one round does only a part of it.
void check_rounds_of_long_items() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  constexpr uint32_t kChunks = 1 << 12, kItems = 100;
  engine::Memory memory("", uint64_t{1} << 20);
  engine::Engine engine(&memory, 0);
  engine.add_pool(engine::Schema({{"x", "u1", {}, 0}}, 1));
  engine::TableConfig config;
  config.name = "t";
  const uint32_t table = engine.add_table(config, 0);
  const engine::SessionId id = engine.begin_session();
  const uint32_t writer = engine.open_writer(id, "a", 0).writer;
  for (uint32_t i = 0; i < kChunks; ++i) engine.append(writer, *engine.grant(writer));

  const SessionLayout layout = layout_of_writer();
  const std::string path = folder + "/session";
  HostSession session(id, {SessionRecord::Kind::kWriter, writer, 0, layout, 0, ""}, path);
  RingChannel client({-1, path, layout});
  const double one = 1.0;
  const InsertMessage message{
      .num_bytes = sizeof message + sizeof one, .count = kItems, .num_steps = kChunks};
  iovec parts[]{{const_cast<InsertMessage*>(&message), sizeof message},
                {const_cast<double*>(&one), sizeof one}};
  TENGEN_CHECK(client.send(parts, kAtOnce, Urgency::kLater));
  const uint64_t most = engine::kMaxSamples / kChunks;
  for (uint64_t before = 0; before < kItems;) {
    TENGEN_CHECK(session.serve(engine) == Progress::kDone);
    const uint64_t now = engine.table(table).size();
    TENGEN_CHECK(now > before && now - before <= most);
    before = now;
  }
  // So are items that make room for another one.
  engine.table(table).set_capacity(1, UINT64_MAX);
  for (uint64_t before = kItems; before > 1;) {
    engine.table(table).remove_some();
    const uint64_t now = engine.table(table).size();
    TENGEN_CHECK(now < before && before - now <= most);
    before = now;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  check_versions_of_memory();
  check_rounds_of_large_batches();
  check_rounds_of_long_items();
  return 0;
}
