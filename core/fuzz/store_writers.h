#pragma once
// The writing clients of store_model: a raw client, and a client that uses store::Writer.

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "fuzz/store_clients.h"
#include "fuzz/store_scene.h"
#include "store/clients/writer.h"
#include "store/session/ring_channel.h"
#include "store/session/stream_channel.h"

namespace tengen::fuzz::scene {

class RawWriter final : public RawClient {
 public:
  RawWriter(Scene* scene, std::string name) : RawClient(scene), name_(std::move(name)) {}

  void act(Commands& commands) override {
    if (!is_open()) begin();
    switch (const uint32_t what = commands.next() % 16) {
      case 0:
        return end();
      case 1:
        return end_in_a_message(commands.next());
      case 2:
        return offend(commands.next());
      case 3:
      case 4:
      case 5:
      case 6:
        return insert(commands);
      case 7: {
        // Steps of this writer, steps that do not exist yet, or the largest possible number.
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
      const uint64_t next = world().gateway->open_writer(descriptor, name_, 0, in_time());
      expect(next == next_sequence_, "a writer goes on behind its last insert");
    });
    writer_ = ++scene_.num_writers;
    num_steps_ = num_flushes_ = 0;
  }
  uint32_t room() const {
    return kStepsPerChunk - static_cast<uint32_t>(num_steps_ % kStepsPerChunk);
  }
  std::string steps_of(uint32_t count) const {
    std::string steps, fills;
    for (uint32_t i = 0; i < count; ++i) {
      const Step step = Step::of(writer_, num_steps_ + i);
      steps.append(reinterpret_cast<const char*>(&step.who), sizeof step.who);
      fills.append(reinterpret_cast<const char*>(&step.fill), sizeof step.fill);
    }
    return steps + fills;
  }
  void append(uint32_t wished) {
    const uint32_t count = std::min(wished, room());
    send(store::Steps{.num_steps = count}, steps_of(count), /*rest_is_behind=*/true);
    num_steps_ += count;
    (void)flush();
  }
  // Disconnects in the middle of a message.
  void end_in_a_message(uint32_t how) {
    if (how % 2 == 0) {
      const uint32_t count = room();
      send(store::Steps{.num_steps = count}, steps_of(count), /*rest_is_behind=*/true,
           1 + how * sizeof(uint64_t));
    } else {
      send(store::InsertMessage{.count = 1, .num_steps = 1}, std::string(sizeof(double), '\0'),
           /*rest_is_behind=*/false, 1 + how % (sizeof(store::InsertMessage) + sizeof(double) - 1));
    }
    end();
  }
  // Sends a message that the store must reject.
  void offend(uint32_t how) {
    const double one = 1.0;
    const std::string priority(reinterpret_cast<const char*>(&one), sizeof one);
    const store::InsertMessage item{.sequence = next_sequence_, .count = 1, .num_steps = 1};
    store::InsertMessage wrong = item;
    switch (how % 6) {
      case 0:  // steps across the end of a chunk
        send(store::Steps{.num_steps = room() + 1}, steps_of(room() + 1), /*rest_is_behind=*/true);
        break;
      case 1:  // a table that does not exist
        wrong.table = how < 128 ? uint32_t{kNumTables} : UINT32_MAX;
        send(wrong, priority);
        break;
      case 2:  // fewer priorities than items
        wrong.count = 3;
        send(wrong, priority + priority);
        break;
      case 3:  // no item
        wrong.count = 0;
        send(wrong, priority);
        break;
      case 4:  // allowed only for a client on this host
        send(store::Append{.slot = how});
        break;
      default:  // allowed only for a sampler
        send(store::OfLease{.kind = store::Request::kAck, .lease = how});
    }
    expect(!flush(), "what is not legal is refused");
  }
  // Inserts items that may overlap, have gaps between them, be longer than a sample, be repeated,
  // or skip sequence numbers.
  void insert(Commands& commands) {
    constexpr uint32_t kStrides[] = {1, 1, 0, 2, kStepsPerChunk + 1};
    constexpr uint32_t kLonger[] = {0, 0, 1, kStepsPerChunk + 1};
    const uint32_t table = commands.next() % kNumTables;
    const uint64_t first = num_steps_ - std::min<uint64_t>(num_steps_, commands.next() % 24);
    const uint32_t count = 1 + commands.next() % 3;
    const uint32_t priority = commands.next();
    const uint32_t how = commands.next();
    const uint32_t stride = kStrides[how % 5];
    const uint32_t num_steps = kNumSteps[table] + kLonger[how / 5 % 4];
    const uint64_t back = how / 20;
    const uint64_t sequence = back == 0   ? next_sequence_ + 1 + how
                              : back <= 3 ? next_sequence_ - std::min(next_sequence_, back)
                                          : next_sequence_;
    const uint64_t num_known =
        std::min<uint64_t>(count, next_sequence_ - std::min(next_sequence_, sequence));
    const double value = priority == 255   ? std::numeric_limits<double>::max()
                         : priority == 254 ? std::numeric_limits<double>::denorm_min()
                                           : priority;
    expect(world().num_inserts(table) == scene_.model.num_items(table), "only inserts insert");
    send(store::InsertMessage{.table = table,
                              .sequence = sequence,
                              .first = first,
                              .count = count,
                              .stride = stride,
                              .num_steps = num_steps},
         {reinterpret_cast<const char*>(&value), sizeof value});
    // The items before a rejected item are inserted.
    const bool is_taken = flush();
    const uint64_t num_taken = world().num_inserts(table) - scene_.model.num_items(table);
    expect(!is_taken || num_taken == count - num_known,
           "what is not refused and was not sent before is inserted");
    for (uint64_t i = num_known; i < num_known + num_taken; ++i) {
      const uint64_t begin = first + i * stride;
      expect(begin + num_steps <= num_steps_, "items have steps that were appended");
      scene_.model.insert(table, {writer_, begin, num_steps});
    }
    if (num_taken > 0) next_sequence_ = sequence + num_known + num_taken;
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

// A client that uses store::Writer, as actors do.
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
      const store::InsertRun run{table, writer_->next_sequence(), first,         1,
                                 1,     kNumSteps[table],         {&priority, 1}};
      wait([&](Deadline deadline) { return writer_->insert(run, deadline); });
      wait([&](Deadline deadline) { return writer_->flush(deadline); });
      scene_.model.insert(table, {number_, first, kNumSteps[table]});
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
          schema(), store::SlabMap::none(), 2);
    }
  }
  void append(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const Step step = Step::of(number_, writer_->num_steps());
      const std::byte* const columns[] = {reinterpret_cast<const std::byte*>(&step.who),
                                          reinterpret_cast<const std::byte*>(&step.fill)};
      wait([&](Deadline deadline) { return writer_->append(columns, 1, deadline) == 1; });
    }
  }
  // If an attempt takes long, memory may be full, so ends the other clients to free memory.
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

}  // namespace tengen::fuzz::scene
