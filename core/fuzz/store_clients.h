#pragma once
// The clients: some write messages as they are on the wire, legal and not, in any order; others are
// those of actors and learners, through each door of a store.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fuzz/store_scene.h"
#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/session/encoding.h"
#include "store/session/ring_channel.h"
#include "store/session/stream_channel.h"

namespace tengen::fuzz::scene {

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

inline std::vector<double> priorities_of(uint32_t byte) {
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

}  // namespace tengen::fuzz::scene
