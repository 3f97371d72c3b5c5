#include "store/session/host_session.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/testing.h"
#include "store/service/service_testing.h"
#include "store/session/messages.h"
#include "store/session/ring_channel.h"
#include "store/session/ring_memory.h"
#include "transport/ring.h"
#include "transport/shared_memory.h"

using namespace tengen;
using namespace tengen::store;

namespace {

// A resuming server takes ownership of its sessions' memory, even if no client ever received that
// memory because the previous server was killed. Memory of a newer version is rejected.
void check_versions_of_memory() {
  const Folder folder("session");
  const SessionLayout layout{4096, 4096};
  const SessionRecord record{SessionRecord::Kind::kWriter, 0, 0, layout, 0, "writer a"};
  const engine::SessionProgress progress{};
  for (const uint32_t version : {0u, kRingVersion, kRingVersion + 1}) {
    const std::string path = folder.path / "session";
    {
      const auto memory = transport::SharedMemory::create(path, layout.num_bytes());
      reinterpret_cast<SessionHeader*>(memory.data())->version.store(version);
    }
    const bool is_refused = throws([&] {
      const HostSession session(1, record, path, &progress);
      TENGEN_CHECK(!session.is_taken() && !session.is_over());
    });
    TENGEN_CHECK(is_refused == (version > kRingVersion));
    if (!is_refused) continue;  // the session has removed its memory
    const auto memory = transport::SharedMemory::open(path, layout.num_bytes());
    const auto* const header = reinterpret_cast<const SessionHeader*>(memory.data());
    TENGEN_CHECK(header->version.load() == version);
    std::filesystem::remove(path);
  }
}

// However many batches a client requests, one round of its session touches at most as many items as
// two batches of maximum size, so that other clients need not wait for all of them.
void check_rounds_of_large_batches() {
  const Folder folder("session");
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
  const std::string path = folder.path / "session";
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
}

// A message may insert many items with many chunks per item. Its cost is that of all these chunks,
// so one round processes only a part of the message.
void check_rounds_of_long_items() {
  const Folder folder("session");
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
  const std::string path = folder.path / "session";
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
  // Items that are removed to make space for another one are also processed in parts.
  engine.table(table).set_capacity(1, UINT64_MAX);
  for (uint64_t before = kItems; before > 1;) {
    engine.table(table).remove_some();
    const uint64_t now = engine.table(table).size();
    TENGEN_CHECK(now < before && before - now <= most);
    before = now;
  }
}

// Returns a client's end of a socket whose other end is closed.
int dead_socket() {
  int ends[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::close(ends[0]);
  return ends[1];
}

// The next server answers before the client has reconnected, so no byte on the socket can wake the
// client. The client must therefore check once more before it sleeps.
void check_answer_while_away() {
  const Folder folder("session");
  const SessionLayout layout{4096, 4096};
  const std::string path = folder.path / "session";
  const transport::SharedMemory memory = transport::SharedMemory::create(path, layout.num_bytes());
  auto* const header = reinterpret_cast<SessionHeader*>(memory.data());
  header->version.store(kRingVersion);
  int ends[2] = {-1, -1};
  const auto reconnect = [&] {
    header->num_applied.store(1);
    wake(&header->client_sleeps, -1);
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return ends[1];
  };
  RingChannel channel({dead_socket(), path, layout, reconnect, std::chrono::seconds(60)});
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  TENGEN_CHECK(channel.send_one(uint64_t{7}, deadline, Urgency::kLater));
  TENGEN_CHECK(channel.wait_for_all(deadline));
  TENGEN_CHECK(std::chrono::steady_clock::now() < deadline);
  ::close(ends[0]);
}

// A channel that fails to open closes its connection, which would otherwise keep its session open.
void check_refused() {
  const int descriptor = dead_socket();
  TENGEN_CHECK(throws([&] { RingChannel({descriptor, "/nowhere/session", {4096, 4096}}); }));
  TENGEN_CHECK(fcntl(descriptor, F_GETFD) < 0);
}

// A forked process changes nothing in the rings, which it shares with its parent.
void check_forked() {
  const Folder folder("session");
  const SessionLayout layout{4096, 4096};
  const std::string path = folder.path / "session";
  const transport::SharedMemory memory = transport::SharedMemory::create(path, layout.num_bytes());
  reinterpret_cast<SessionHeader*>(memory.data())->version.store(kRingVersion);
  transport::Ring replies = layout.replies(memory.data());
  const uint64_t reply = 7;
  std::memcpy(replies.reserve(sizeof reply), &reply, sizeof reply);
  replies.commit(sizeof reply);
  RingChannel channel({dead_socket(), path, layout});
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused = throws([&] { channel.peek_reply(); }) &&
                            throws([&] { channel.pop_reply(); }) &&
                            throws([&] { channel.wait_for_reply(kAtOnce); }) &&
                            throws([&] { channel.ring(); }) && throws([&] { channel.waits(); });
    _exit(is_refused ? 0 : 1);
  }
  int status = -1;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
  TENGEN_CHECK(channel.peek_reply().size() == sizeof reply);
  channel.pop_reply();
  TENGEN_CHECK(channel.peek_reply().empty());
}

}  // namespace

int main() {
  check_forked();
  check_refused();
  check_answer_while_away();
  check_versions_of_memory();
  check_rounds_of_large_batches();
  check_rounds_of_long_items();
  return 0;
}
