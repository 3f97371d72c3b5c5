#include "store/service/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/shortage_testing.h"
#include "store/clients/writer.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

// Forwards bytes between two sockets in both directions, and counts the bytes of the first socket.
class Line {
 public:
  Line() {
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, client_) == 0);
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, server_) == 0);
    thread_ = std::thread([this] {
      while (pass(client_[1], server_[1], &num_bells_) && pass(server_[1], client_[1], nullptr)) {
        pollfd polls[] = {{client_[1], POLLIN, 0}, {server_[1], POLLIN, 0}};
        poll(polls, 2, -1);
      }
      close(client_[1]);
      close(server_[1]);
    });
  }
  ~Line() { thread_.join(); }  // ends because the client has closed its side

  int client() const { return client_[0]; }
  int server() const { return server_[0]; }
  uint64_t num_bells() const { return num_bells_; }

 private:
  // Returns false if the peer of `from` has closed.
  static bool pass(int from, int to, std::atomic<uint64_t>* count) {
    char bytes[64];
    const ssize_t num_bytes = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (num_bytes <= 0) return num_bytes < 0;
    if (count != nullptr) *count += static_cast<uint64_t>(num_bytes);
    (void)!send(to, bytes, static_cast<size_t>(num_bytes), MSG_NOSIGNAL);
    return true;
  }

  int client_[2];
  int server_[2];
  std::atomic<uint64_t> num_bells_ = 0;
  std::thread thread_;
};

// A busy writer rarely wakes the server, which still receives all inserts. While a sampler waits,
// the writer signals every insert.
void check_naps(bool sampler_waits) {
  const Folder folder("server");
  const Schema schema({{"x", "i8", {}, 0}}, 64);
  Store store(folder.path.string(), 1 << 20, 3);
  store.change([&](Engine& engine) { engine.add_pool(schema); });
  TableConfig config;
  config.name = "t";
  config.max_items = 1000;
  config.limits.min_size = 1;
  const uint32_t table = store.change([&](Engine& engine) { return engine.add_table(config, 0); });
  config.name = "empty";
  const uint32_t empty = store.change([&](Engine& engine) { return engine.add_table(config, 0); });
  constexpr uint64_t kInserts = 20'000;
  uint64_t num_bells = 0;
  {
    Server server(&store);
    Line line;
    const auto sampler =
        make_sampler(store, connect_sampler(server, empty, 1, 1), store.slab_map(0), empty, 1);
    Delivery delivery;
    if (sampler_waits) TENGEN_CHECK(!next(*sampler, kAtOnce, &delivery));
    SlabFiles files;
    const Server::Opened opened = server.open_writer(line.server(), "a", 0, kNever);
    const SessionAddress address{line.client(), opened.memory_path, opened.layout};
    Writer writer({std::make_unique<RingChannel>(address), 0, 16}, schema,
                  files.map(store, folder.path), 1);
    for (uint64_t i = 0; i < kInserts; ++i) {
      write_item(writer, &i, table);
      // Gives a woken server the time to finish one insert before the next one.
      if (i % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    TENGEN_CHECK(writer.flush(kNever));
    const uint64_t num_inserts = store.read(
        [&](const Engine& engine) { return engine.table(table).limiter().num_inserts(); });
    TENGEN_CHECK(num_inserts == kInserts);
    num_bells = line.num_bells();
  }
  TENGEN_CHECK(sampler_waits ? num_bells > kInserts / 20 : num_bells < kInserts / 10);
}

// Most of the memory holds items, however many chunks a writer requests in advance.
void check_stock() {
  const Folder folder("server");
  constexpr uint64_t kNumChunks = 256;
  const Schema schema({{"x", "u1", {4096}, 0}}, 1);
  const auto owner = store_of(folder.path, kNumChunks * schema.chunk_bytes(), schema);
  Store& store = *owner;
  Server server(&store);
  SlabFiles files;
  Writer writer(connect_writer(server, "a", 64), schema, files.map(store, folder.path), 1);
  const std::vector<std::byte> step(4096);
  for (uint64_t i = 0; i < 4 * kNumChunks; ++i) {
    write_item(writer, step.data());
    TENGEN_CHECK(store.read([](const Engine& engine) { return engine.num_granted(0); }) <=
                 kNumChunks / 64 + 1);
  }
  TENGEN_CHECK(writer.flush(in_time()));
  TENGEN_CHECK(table_size(store) >= kNumChunks - kNumChunks / 64 - 1);
}

// Many writers together do not reserve most of the memory, so a late writer still gets a chunk.
void check_stocks() {
  const Folder folder("server");
  constexpr uint64_t kNumChunks = 512, kNumWriters = 100;
  const Schema schema({{"x", "u1", {4096}, 0}}, 1);
  const auto owner = store_of(folder.path, kNumChunks * schema.chunk_bytes(), schema);
  Store& store = *owner;
  Server server(&store);
  SlabFiles files;
  std::vector<std::unique_ptr<Writer>> writers;
  for (uint64_t i = 0; i < kNumWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(connect_writer(server, std::to_string(i), 64),
                                               schema, files.map(store, folder.path), 1));
  }
  const std::vector<std::byte> step(4096);
  for (uint64_t round = 0; round < 20; ++round) {
    for (const auto& writer : writers) write_item(*writer, step.data());
  }
  const uint64_t num_granted = store.read([](const Engine& engine) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kNumWriters; ++i) sum += engine.num_granted(i);
    return sum;
  });
  TENGEN_CHECK(num_granted <= kNumChunks / 4 + kNumWriters);
}

// While memory is exhausted, sessions of leaving clients still end, because they may hold the
// missing memory. Other clients wait, and continue when memory is available.
void check_leaving_clients() {
  const Folder folder("server");
  const Schema schema({{"x", "i8", {}, 0}}, 4);
  const auto owner = store_of(folder.path, 1 << 20, schema);
  Store& store = *owner;
  Server server(&store);
  SlabFiles files;
  Writer writer(connect_writer(server, "a"), schema, files.map(store, folder.path), 1);
  const auto insert = [&](uint64_t i) { write_item(writer, &i); };
  insert(0);
  TENGEN_CHECK(writer.flush(in_time()));
  auto sampler = make_sampler(store, connect_sampler(server, 0, 1, 1), store.slab_map(0), 0, 1);
  auto other = connect_writer(server, "b");
  Delivery delivery;
  TENGEN_CHECK(next(*sampler, in_time(), &delivery));
  TENGEN_CHECK(server.describe().size() == 3);
  {
    const NoMemory none;
    insert(1);
    sampler.reset();
    other.channel.reset();
    const Deadline end = in_time();
    while (server.describe().size() > 1) {
      TENGEN_CHECK(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const auto num_loans = [](const Engine& engine) { return engine.num_loans(1); };
    TENGEN_CHECK(store.read(num_loans) == 0);
    TENGEN_CHECK(!store.read([](const Engine& engine) { return engine.is_writer_open("b"); }));
    TENGEN_CHECK(table_size(store) == 1);
  }
  TENGEN_CHECK(writer.flush(in_time()));
  TENGEN_CHECK(table_size(store) == 2);
}

// A server leaves its sessions open if its process is killed or its start fails. They continue with
// the next server of the folder, except a session whose memory is invalid, which ends without
// affecting the others.
void check_left_sessions() {
  const Folder folder("left");
  const Schema schema({{"x", "i8", {}, 0}}, 4);
  auto store = store_of(folder.path, 1 << 20, schema);
  store->keep(false);
  auto server = std::make_unique<Server>(store.get());
  const auto connect = [&](const std::string& name) {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const Server::Opened opened = server->open_writer(ends[0], name, 0, kNever);
    const auto reconnect = [&server, id = opened.id] {
      if (!server) return -1;
      int again[2];
      TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, again) == 0);
      try {
        server->resume(again[0], id);
      } catch (...) {
        close(again[0]);
        close(again[1]);
        throw;
      }
      return again[1];
    };
    return WriterSession{
        std::make_unique<RingChannel>(SessionAddress{ends[1], opened.memory_path, opened.layout,
                                                     reconnect, std::chrono::seconds(600)}),
        opened.next_sequence, 2};
  };
  SlabFiles files;
  Writer one(connect("one"), schema, files.map(*store, folder.path), 1);
  Writer two(connect("two"), schema, files.map(*store, folder.path), 1);
  const auto insert = [](Writer& writer, uint64_t i) {
    write_item(writer, &i);
    return writer.flush(in_time());
  };
  for (uint64_t i = 0; i < 10; ++i) TENGEN_CHECK(insert(one, i) && insert(two, i));
  server->leave();
  server.reset();
  store.reset();
  TENGEN_CHECK(folder.count("session-") == 2);
  {
    const auto memory = transport::SharedMemory::open((folder.path / "session-1").string());
    reinterpret_cast<SessionHeader*>(memory.data())->version.store(kRingVersion + 1);
  }
  store = store_of(folder.path, 1 << 20, schema);
  const Resumed resumed = store->keep(true);
  TENGEN_CHECK(resumed.sessions.size() == 2);
  server = std::make_unique<Server>(store.get(), resumed.sessions);
  TENGEN_CHECK(folder.count("session-") == 1 && server->describe().size() == 1);
  TENGEN_CHECK(insert(one, 10) && throws([&] { insert(two, 10); }));
  TENGEN_CHECK(table_size(*store) == 21);
}

// A writer whose name is rejected leaves no session in the engine.
void check_refused_names() {
  const Folder folder("refused");
  Store store(folder.path.string(), 1 << 20, 3);
  store.change([&](Engine& engine) { engine.add_pool(Schema({{"x", "i8", {}, 0}}, 4)); });
  Server server(&store);
  const auto next = [&] {
    return store.change([](Engine& engine) {
      const SessionId id = engine.begin_session();
      engine.end_session(id);
      return id;
    });
  };
  const SessionId before = next();
  for (const std::string& name : {std::string(300, 'x'), std::string()}) {
    TENGEN_CHECK(throws([&] { server.open_writer(-1, name, 0, kAtOnce); }));
    TENGEN_CHECK(throws([&] { store.open_writer(name, 0); }));
  }
  TENGEN_CHECK(next() == before + 1);
}

// A change in many steps lets another thread access the store between its steps.
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

// All batches on loan to a client return when the client leaves, whatever number of steps it takes.
void check_long_end() {
  const Folder folder("steps");
  constexpr uint32_t kItems = 8000, kBatch = 500;
  const Schema schema({{"x", "i8", {}, 0}}, 64);
  TableConfig config;
  config.sampler = selector_of("fifo");
  config.max_times_sampled = 1;
  const auto owner = store_of(folder.path, 1 << 20, schema, config);
  Store& store = *owner;
  Server server(&store);
  SlabFiles files;
  Writer writer(connect_writer(server, "a"), schema, files.map(store, folder.path), 1);
  for (uint64_t i = 0; i < kItems; ++i) write_item(writer, &i);
  TENGEN_CHECK(writer.flush(in_time()));
  const auto connect = [&](uint32_t num_samples, uint32_t num_ahead) {
    return make_sampler(store, connect_sampler(server, 0, num_samples, num_ahead),
                        files.map(store, folder.path), 0, num_samples);
  };
  auto ending = connect(kBatch, 2);
  Delivery delivery;
  for (uint32_t i = 0; i < kItems / kBatch; ++i) TENGEN_CHECK(next(*ending, in_time(), &delivery));
  const auto other = connect(kItems, 0);
  TENGEN_CHECK(!next(*other, kAtOnce, &delivery));
  ending.reset();
  TENGEN_CHECK(next(*other, in_time(), &delivery) && delivery.keys.size() == kItems);
}

}  // namespace

int main() {
  check_turns();
  check_long_end();
  check_leaving_clients();
  check_left_sessions();
  check_refused_names();
  check_stock();
  check_stocks();
  check_naps(false);
  check_naps(true);
  return 0;
}
