// Several clients of one store, held to a model: whatever legal messages one of them sends, in
// whatever order, the items of the others keep each byte and each use.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/rng.h"
#include "fuzz/scratch_folder.h"
#include "fuzz/target.h"
#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/net/gateway.h"
#include "store/service/server.h"
#include "store/service/store.h"
#include "store/session/encoding.h"
#include "store/session/ring_channel.h"
#include "store/session/stream_channel.h"

namespace tengen::fuzz {
namespace {

using store::Deadline;
using store::engine::Engine;
using store::engine::Schema;

constexpr uint32_t kStepsPerChunk = 4;
// So many that a slab has one slot, and a slot that is free is the next writer's.
constexpr uint32_t kFillBytes = 2000;
constexpr size_t kMaxCommandBytes = 640;
constexpr uint64_t kMemoryBytes[] = {uint64_t{1} << 20, uint64_t{1} << 18};
constexpr uint32_t kNumSamples = 3;
constexpr uint32_t kMaxUses = 2;  // of an item of the second table
constexpr uint32_t kNumTables = 2;
constexpr uint32_t kNumSteps[kNumTables] = {1, 2};  // of a sample

// Long enough for whatever is to come, so that only a hang takes it.
Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

Schema schema() {
  return Schema({{"who", "u8", {2}, 0}, {"fill", "u1", {kFillBytes}, 0}}, kStepsPerChunk);
}

// What a step shows: its writer and its number there, and bytes that follow from both.
struct Step {
  std::array<uint64_t, 2> who;
  std::array<uint8_t, kFillBytes> fill;

  static Step of(uint64_t writer, uint64_t number) {
    Step step{{writer, number}, {}};
    for (uint32_t i = 0; i < kFillBytes; ++i) {
      step.fill[i] = static_cast<uint8_t>(31 * writer + 7 * number + i);
    }
    return step;
  }
  bool operator==(const Step&) const = default;
};

// The reference: how often each item was inserted, is on loan, and was used.
class Model {
 public:
  struct Item {
    uint32_t table;
    uint64_t writer, first;
    auto operator<=>(const Item&) const = default;
  };

  void insert(const Item& item) { ++items_[item].num_inserted; }
  void lend(const Item& item) {
    Counts& counts = items_[item];
    expect(counts.num_inserted > 0, "only items that were inserted are drawn");
    ++counts.num_lent;
    const uint64_t most = counts.num_inserted * kMaxUses;
    expect(item.table == 0 || counts.num_lent + counts.num_used <= most,
           "no item is used more often than it may be");
  }
  void end_loan(const Item& item, bool is_used) {
    --items_[item].num_lent;
    items_[item].num_used += is_used ? 1u : 0u;
  }
  void check_all_used() const {
    for (const auto& [item, counts] : items_) {
      expect(item.table == 0 || counts.num_used == counts.num_inserted * kMaxUses,
             "every item is used as often as it may be");
    }
  }

 private:
  struct Counts {
    uint64_t num_inserted = 0, num_lent = 0, num_used = 0;
  };
  std::map<Item, Counts> items_;
};

using Items = std::vector<Model::Item>;

// The items of a gathered batch, each byte of which must be its writer's.
Items read_batch(uint32_t table, const std::byte* data, uint32_t num_samples = kNumSamples) {
  const store::BatchLayout layout(schema(), num_samples, kNumSteps[table]);
  Items items;
  for (uint32_t i = 0; i < num_samples; ++i) {
    Step first{};
    for (uint32_t j = 0; j < kNumSteps[table]; ++j) {
      const uint32_t row = i * kNumSteps[table] + j;
      Step step;
      std::memcpy(&step.who, data + layout.offsets[0] + row * sizeof step.who, sizeof step.who);
      std::memcpy(&step.fill, data + layout.offsets[1] + row * kFillBytes, kFillBytes);
      if (j == 0) first = step;
      expect(step == Step::of(first.who[0], first.who[1] + j), "each byte is its writer's");
    }
    items.push_back({table, first.who[0], first.who[1]});
  }
  return items;
}

// A store with its two doors.
struct World {
  World(const std::string& folder, uint64_t memory_bytes, bool goes_on)
      : store(folder, memory_bytes, 3) {
    store.change([&](Engine& engine) {
      engine.add_pool(schema());
      for (uint32_t i = 0; i < kNumTables; ++i) {
        store::engine::TableConfig config;
        config.name = i == 0 ? "any" : "twice";
        config.sampler = store::engine::selector_of(i == 0 ? "prioritized" : "uniform");
        config.max_items = i == 0 ? 50 : 100'000;
        config.max_times_sampled = i == 0 ? 0 : kMaxUses;
        config.num_steps = kNumSteps[i];
        engine.add_table(config, 0);
      }
    });
    const store::Resumed resumed = store.keep(goes_on);
    server.emplace(&store, resumed.sessions);
    gateway.emplace(&store);
  }
  // Blocks until the store knows that every client has gone.
  void wait_until_alone() {
    const Deadline end = in_time();
    while (!server->describe().empty() || !gateway->describe().empty()) {
      expect(std::chrono::steady_clock::now() < end, "sessions end in time");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  bool can_draw(uint32_t table, uint32_t num_samples = kNumSamples) {
    return store.read([&](const Engine& engine) {
      return engine.table(table).samples_allowed(num_samples) == num_samples;
    });
  }

  store::Store store;
  std::optional<store::Server> server;
  std::optional<store::Gateway> gateway;
};

// Both ends of a connection; whoever takes one over closes it.
std::array<int, 2> ends_of_connection() {
  int ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  return {ends[0], ends[1]};
}

// The commands of one input, byte by byte.
struct Commands {
  std::string_view bytes;
  uint32_t next() { return take_byte(&bytes); }
  bool is_at_end() const { return bytes.empty(); }
};

class Client;
struct Scene {
  World* world;
  Model model;
  uint64_t num_writers = 0;
  uint64_t num_messages = 0;
  std::vector<std::unique_ptr<Client>> clients;
  void end_others(const Client* but);
};

class Client {
 public:
  explicit Client(Scene* scene) : scene_(*scene) {}
  virtual ~Client() = default;
  virtual void act(Commands& commands) = 0;
  // Ends the session; act() begins another.
  virtual void end() = 0;

 protected:
  World& world() { return *scene_.world; }
  Scene& scene_;
};

void Scene::end_others(const Client* but) {
  for (const auto& client : clients) {
    if (client.get() != but) client->end();
  }
}

// One that writes messages as they are on the wire.
class RawClient : public Client {
 public:
  using Client::Client;
  ~RawClient() override { close(); }

 protected:
  // Gives one end of a new connection to `open`, which does not take it over.
  template <class Open>
  void connect(Open&& open) {
    const std::array<int, 2> ends = ends_of_connection();
    open(ends[0]);
    ::close(ends[0]);
    descriptor_ = ends[1];
  }
  bool is_open() const { return descriptor_ >= 0; }
  void close() {
    if (is_open()) ::close(std::exchange(descriptor_, -1));
  }
  template <class Message>
  void send(Message message, std::string_view rest = {}, bool rest_is_behind = false) {
    if (!rest_is_behind) message.num_bytes = static_cast<uint32_t>(sizeof message + rest.size());
    ++scene_.num_messages;
    std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
    bytes += rest;
    // One that was refused takes no more; receive() has its reason.
    (void)!::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  bool read(void* to, size_t num_bytes) {
    for (auto* at = static_cast<char*>(to); num_bytes > 0;) {
      pollfd one{descriptor_, POLLIN, 0};
      expect(poll(&one, 1, 60'000) == 1, "an answer in time");
      const ssize_t got = recv(descriptor_, at, num_bytes, 0);
      if (got <= 0) return false;
      at += got;
      num_bytes -= static_cast<size_t>(got);
    }
    return true;
  }
  // The next reply of that kind, after which its rest is in `rest`; false where the session is
  // over. What the store's side waits for comes when the others end.
  bool receive(store::Reply kind, std::string* rest) {
    while (true) {
      store::MessageHead head;
      if (!read(&head, sizeof head)) return false;
      expect(head.num_bytes >= sizeof head && head.num_bytes < (1 << 20), "a reply is whole");
      rest->resize(head.num_bytes - sizeof head);
      if (!read(rest->data(), rest->size())) return false;
      if (head.kind == static_cast<uint32_t>(kind)) return true;
      if (head.kind == static_cast<uint32_t>(store::Reply::kError)) return false;
      if (head.kind == static_cast<uint32_t>(store::Reply::kWaits) && !rest->empty()) {
        scene_.end_others(this);
      }
    }
  }

 private:
  int descriptor_ = -1;
};

class RawWriter final : public RawClient {
 public:
  RawWriter(Scene* scene, std::string name) : RawClient(scene), name_(std::move(name)) {}

  void act(Commands& commands) override {
    if (!is_open()) begin();
    switch (const uint32_t what = commands.next() % 16) {
      case 0:
        return end();
      case 1:
      case 2:
      case 3: {
        const uint32_t table = commands.next() % kNumTables;
        const uint32_t back = commands.next() % 24;
        const uint32_t count = 1 + commands.next() % 3;
        return insert(table, back, count, commands.next());
      }
      case 4:
      case 5: {
        // Steps that it has, steps that it has not, and the most that there can be.
        const uint32_t back = commands.next();
        const uint64_t first = back % 8 == 0   ? UINT64_MAX
                               : back % 8 == 1 ? num_steps_ + back / 8
                                               : num_steps_ - std::min<uint64_t>(num_steps_, back);
        send(store::Release{.first = first});
        return (void)flush();
      }
      default:
        return append(1 + what % 4);
    }
  }
  void end() override { close(); }

 private:
  void begin() {
    connect([&](int descriptor) {
      next_sequence_ = world().gateway->open_writer(descriptor, name_, 0, in_time());
    });
    writer_ = ++scene_.num_writers;
    num_steps_ = num_flushes_ = 0;
  }
  void append(uint32_t wished) {
    const uint32_t room = kStepsPerChunk - static_cast<uint32_t>(num_steps_ % kStepsPerChunk);
    const uint32_t count = std::min(wished, room);
    std::string steps, fills;
    for (uint32_t i = 0; i < count; ++i) {
      const Step step = Step::of(writer_, num_steps_ + i);
      steps.append(reinterpret_cast<const char*>(&step.who), sizeof step.who);
      fills.append(reinterpret_cast<const char*>(&step.fill), sizeof step.fill);
    }
    send(store::Steps{.num_steps = count}, steps + fills, /*rest_is_behind=*/true);
    num_steps_ += count;
    (void)flush();
  }
  void insert(uint32_t table, uint32_t back, uint32_t count, uint32_t priority) {
    const uint64_t first = num_steps_ - std::min<uint64_t>(num_steps_, back);
    const double value = priority == 255   ? std::numeric_limits<double>::max()
                         : priority == 254 ? std::numeric_limits<double>::denorm_min()
                                           : priority;
    const uint64_t before = num_inserts(table);
    send(store::InsertMessage{.table = table,
                              .version = priority,
                              .sequence = next_sequence_,
                              .first = first,
                              .count = count,
                              .stride = 1,
                              .num_steps = kNumSteps[table]},
         {reinterpret_cast<const char*>(&value), sizeof value});
    // Those before the one that is refused are in.
    const bool is_taken = flush();
    const uint64_t num_taken = num_inserts(table) - before;
    expect(!is_taken || num_taken == count, "what is not refused is inserted");
    for (uint64_t i = 0; i < num_taken; ++i) {
      expect(first + i + kNumSteps[table] <= num_steps_, "items have steps that were appended");
      scene_.model.insert({table, writer_, first + i});
    }
    next_sequence_ += num_taken;
  }
  uint64_t num_inserts(uint32_t table) {
    return world().store.read(
        [&](const Engine& engine) { return engine.table(table).limiter().num_inserts(); });
  }
  bool flush() {
    send(store::Flush{.number = ++num_flushes_});
    std::string rest;
    if (receive(store::Reply::kFlushed, &rest)) return true;
    close();
    return false;
  }

  const std::string name_;
  uint64_t writer_ = 0;
  uint64_t num_steps_ = 0;
  uint64_t num_flushes_ = 0;
  uint64_t next_sequence_ = 0;
};

enum class Door { kLocal, kHost, kNet };

// One that is a Writer, as those of actors are.
class LibraryWriter final : public Client {
 public:
  LibraryWriter(Scene* scene, std::string name, Door door)
      : Client(scene), name_(std::move(name)), door_(door) {}

  void act(Commands& commands) override {
    if (!writer_) begin();
    ++scene_.num_messages;
    try {
      const uint32_t what = commands.next() % 8;
      if (what == 0) return end();
      if (what < 5) return append(what);
      const uint32_t table = what % kNumTables;
      if (writer_->num_steps() < kNumSteps[table]) return;
      const double priority = commands.next();
      const uint64_t first = writer_->num_steps() - kNumSteps[table];
      const store::InsertRun run{table, 1, writer_->next_sequence(), first,
                                 1,     1, kNumSteps[table],         {&priority, 1}};
      wait([&](Deadline deadline) { return writer_->insert(run, deadline); });
      wait([&](Deadline deadline) { return writer_->flush(deadline); });
      scene_.model.insert({table, number_, first});
    } catch (const Error&) {
      expect(false, "nobody is refused who did nothing");
    }
  }
  void end() override { writer_.reset(); }

 private:
  void begin() {
    number_ = ++scene_.num_writers;
    const std::array<int, 2> ends =
        door_ == Door::kLocal ? std::array{-1, -1} : ends_of_connection();
    if (door_ == Door::kLocal) {
      writer_.emplace(world().store.open_writer(name_, 0, in_time()), schema(),
                      world().store.slab_map(0), 2);
    } else if (door_ == Door::kHost) {
      const auto opened = world().server->open_writer(ends[0], name_, 0, in_time());
      writer_.emplace(
          store::WriterSession{std::make_unique<store::RingChannel>(store::SessionAddress{
                                   ends[1], opened.memory_path, opened.layout}),
                               opened.next_sequence, 2},
          schema(), world().store.slab_map(0), 2);
    } else {
      const uint64_t next = world().gateway->open_writer(ends[0], name_, 0, in_time());
      ::close(ends[0]);
      writer_.emplace(
          store::WriterSession{
              std::make_unique<store::StreamChannel>(store::StreamAddress{ends[1], "store"}), next},
          schema(), 2);
    }
  }
  void append(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const Step step = Step::of(number_, writer_->num_steps());
      const std::byte* const columns[] = {reinterpret_cast<const std::byte*>(&step.who),
                                          reinterpret_cast<const std::byte*>(&step.fill)};
      wait([&](Deadline deadline) { return writer_->append(columns, nullptr, 1, deadline) == 1; });
    }
  }
  // Where it takes long, memory may be full, and there is room once the others have ended.
  template <class Attempt>
  void wait(Attempt&& attempt) {
    if (attempt(std::chrono::steady_clock::now() + std::chrono::milliseconds(50))) return;
    scene_.end_others(this);
    expect(attempt(in_time()), "room in time");
  }

  const std::string name_;
  const Door door_;
  std::optional<store::Writer> writer_;
  uint64_t number_ = 0;
};

// What samplers of either kind do with their batches.
class Loans {
 public:
  void add(uint64_t lease, Items items, Model* model) {
    for (const Model::Item& item : items) model->lend(item);
    loans_.emplace_back(lease, std::move(items));
  }
  bool is_empty() const { return loans_.empty(); }
  uint64_t lease(uint32_t which) const { return loans_[which % loans_.size()].first; }
  void end(uint32_t which, bool is_used, Model* model) {
    const auto loan = loans_.begin() + which % static_cast<uint32_t>(loans_.size());
    for (const Model::Item& item : loan->second) model->end_loan(item, is_used);
    loans_.erase(loan);
  }
  void end_all(Model* model) {
    while (!loans_.empty()) end(0, false, model);
  }

 private:
  std::deque<std::pair<uint64_t, Items>> loans_;
};

std::vector<double> priorities_of(uint32_t byte) {
  if (byte % 4 == 0) return {};
  return {static_cast<double>(byte), 1e-300, 3e38};
}

class RawSampler final : public RawClient {
 public:
  RawSampler(Scene* scene, uint32_t table) : RawClient(scene), table_(table) {}
  ~RawSampler() override { end(); }

  void act(Commands& commands) override {
    if (!is_open()) {
      connect([&](int descriptor) {
        world().gateway->open_sampler(descriptor, table_, kNumSamples, 1);
      });
    }
    const uint32_t what = commands.next() % 16;
    if (what == 0) return end();
    if (what < 8) return draw();
    const uint32_t which = commands.next();
    if (loans_.is_empty() || what == 8) {
      // A lease that it has not.
      send(store::OfLease{.kind = what % 2 == 0 ? store::Request::kAck : store::Request::kGiveBack,
                          .lease = uint64_t{1} << 40 | which});
      return refused();
    }
    const uint64_t lease = loans_.lease(which);
    if (what == 9) {
      // A priority that is none.
      const std::vector<double> wrong = {1.0, which % 2 == 0 ? 1e39 : -1.0, 1.0};
      send(store::OfLease{.lease = lease}, as_text(std::span<const double>(wrong)));
      return refused();
    }
    if (what < 12) {
      send(store::OfLease{.kind = store::Request::kGiveBack, .lease = lease});
      return loans_.end(which, false, &scene_.model);
    }
    const std::vector<double> priorities = priorities_of(which);
    send(store::OfLease{.lease = lease}, as_text(std::span<const double>(priorities)));
    loans_.end(which, true, &scene_.model);
  }
  void end() override {
    close();
    loans_.end_all(&scene_.model);
  }

 private:
  void draw() {
    if (!world().can_draw(table_)) return;
    send(store::SampleMessage());
    std::string rest;
    expect(receive(store::Reply::kBatch, &rest), "a batch");
    uint64_t lease = 0;
    std::memcpy(&lease, rest.data(), sizeof lease);
    const store::BatchLayout layout(schema(), kNumSamples, kNumSteps[table_]);
    std::vector<std::byte> data(layout.num_bytes);
    expect(read(data.data(), data.size()), "a whole batch");
    loans_.add(lease, read_batch(table_, data.data()), &scene_.model);
  }
  void refused() {
    std::string rest;
    expect(!receive(store::Reply::kBatch, &rest), "what is not legal is refused");
    end();
  }

  const uint32_t table_;
  Loans loans_;
};

class LibrarySampler final : public Client {
 public:
  LibrarySampler(Scene* scene, uint32_t table, Door door)
      : Client(scene), table_(table), door_(door) {}
  ~LibrarySampler() override { end(); }

  void act(Commands& commands) override {
    if (!sampler_) begin();
    ++scene_.num_messages;
    try {
      const uint32_t what = commands.next() % 8;
      if (what == 0) return end();
      if (what < 4) return draw();
      if (loans_.is_empty()) return;
      const uint32_t which = commands.next();
      const bool is_used = what < 7;
      const uint64_t lease = loans_.lease(which);
      loans_.end(which, is_used, &scene_.model);
      if (!is_used) return sampler_->port().give_back(lease);
      sampler_->port().ack(lease, priorities_of(which));
    } catch (const Error&) {
      expect(false, "nobody is refused who did nothing");
    }
  }
  void end() override {
    sampler_.reset();
    loans_.end_all(&scene_.model);
  }

 private:
  void begin() {
    std::unique_ptr<store::SamplerPort> port;
    if (door_ == Door::kLocal) {
      port = world().store.open_sampler(table_, kNumSamples, 0);
    } else {
      const std::array<int, 2> ends = ends_of_connection();
      const auto opened = world().server->open_sampler(ends[0], table_, kNumSamples, 0);
      port = std::make_unique<store::SamplerPort>(
          std::make_unique<store::RingChannel>(
              store::SessionAddress{ends[1], opened.memory_path, opened.layout}),
          0);
    }
    sampler_.emplace(std::move(port), schema(), world().store.slab_map(0), kNumSamples,
                     kNumSteps[table_]);
  }
  void draw() {
    if (!world().can_draw(table_)) return;
    const std::optional<store::Gathered> batch = sampler_->next(in_time());
    expect(batch.has_value(), "a batch in time");
    loans_.add(batch->delivery.lease, read_batch(table_, batch->data.get()), &scene_.model);
  }

  const uint32_t table_;
  const Door door_;
  std::optional<store::Sampler> sampler_;
  Loans loans_;
};

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
