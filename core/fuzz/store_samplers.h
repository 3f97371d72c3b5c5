#pragma once
// The sampling clients of store_model: a raw client, and a client that uses store::Sampler.

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fuzz/store_clients.h"
#include "fuzz/store_scene.h"
#include "store/clients/sampler.h"
#include "store/session/ring_channel.h"

namespace tengen::fuzz::scene {

// The batches that a sampling client has on loan.
class Loans {
 public:
  void add(uint64_t lease, Samples samples) { loans_.emplace_back(lease, std::move(samples)); }
  bool is_empty() const { return loans_.empty(); }
  uint64_t lease(uint32_t which) const { return loans_[which % loans_.size()].first; }
  void end(uint32_t which, bool is_used, Model* model) {
    const auto loan = loans_.begin() + which % static_cast<uint32_t>(loans_.size());
    for (const Model::Drawn& drawn : loan->second) model->end_loan(drawn, is_used);
    loans_.erase(loan);
  }
  void end_all(Model* model) {
    while (!loans_.empty()) end(0, false, model);
  }

 private:
  std::vector<std::pair<uint64_t, Samples>> loans_;
};

inline std::vector<double> priorities_of(uint32_t byte) {
  if (byte % 4 == 0) return {};
  return {static_cast<double>(byte), 1e-300, 3e38};
}

// A client that samples from a table of the store.
class SamplerClient {
 public:
  SamplerClient(Scene* scene, uint32_t table) : scene_of_loans_(*scene), table_(table) {}

 protected:
  void lend(uint64_t lease, std::span<const int64_t> keys, const std::byte* data) {
    Samples samples = read_batch(table_, keys, data);
    const bool is_whole = scene_of_loans_.world->is_whole();
    for (const Model::Drawn& drawn : samples) scene_of_loans_.model.lend(drawn, is_whole);
    loans_.add(lease, std::move(samples));
  }
  Scene& scene_of_loans_;
  const uint32_t table_;
  Loans loans_;
};

class RawSampler final : public RawClient, private SamplerClient {
 public:
  RawSampler(Scene* scene, uint32_t table) : RawClient(scene), SamplerClient(scene, table) {}
  ~RawSampler() override { end(); }

  void act(Commands& commands) override {
    if (!is_open()) {
      connect([&](int descriptor) {
        world().gateway->open_sampler(descriptor, table_, kNumSamples, 1);
      });
    }
    const uint32_t what = commands.next() % 16;
    if (what == 0) return end();
    if (what < 7) return draw(1);
    const uint32_t which = commands.next();
    if (what == 7) return flood(which);
    if (loans_.is_empty() || what == 8) {
      // An unknown lease, or a kind of request that only earlier versions sent.
      constexpr store::Request kKinds[] = {store::Request::kAck, store::Request::kGiveBack,
                                           store::Request{7}, store::Request{8}};
      send(store::OfLease{.kind = kKinds[which % 4], .lease = uint64_t{1} << 40 | which});
      return refused();
    }
    const uint64_t lease = loans_.lease(which);
    if (what == 9) {
      // An invalid priority.
      const std::vector<double> wrong = {1.0, which % 2 == 0 ? 1e39 : -1.0, 1.0};
      send(store::OfLease{.lease = lease}, as_text(std::span<const double>(wrong)));
      return refused();
    }
    const bool is_used = what >= 12;
    const std::vector<double> priorities = priorities_of(is_used ? which : 0);
    send(store::OfLease{.kind = is_used ? store::Request::kAck : store::Request::kGiveBack,
                        .lease = lease},
         as_text(std::span<const double>(priorities)));
    loans_.end(which, is_used, &scene_.model);
    if (what == 10 || what == 15) {
      // A loan that has ended cannot be returned.
      send(store::OfLease{.kind = store::Request::kGiveBack, .lease = lease});
      return refused();
    }
  }
  void end() override {
    if (is_open()) {
      close();
      world().wait_until_gone(std::string("sampler of ") + kNames[table_]);
    }
    loans_.end_all(&scene_.model);
  }

 private:
  void draw(uint32_t count) {
    if (!world().can_draw(table_, uint64_t{count} * kNumSamples)) return;
    for (uint32_t i = 0; i < count; ++i) send(store::SampleMessage());
    for (uint32_t i = 0; i < count; ++i) receive_batch();
  }
  // Requests several batches. If `how` is odd, receives at most one of them and disconnects.
  void flood(uint32_t how) {
    if (how % 2 == 0) return draw(1 + how % 8);
    const bool can_draw = world().can_draw(table_, kNumSamples);
    for (uint32_t i = 0; i <= how; ++i) send(store::SampleMessage());
    if (can_draw) receive_batch();
    end();
  }
  void receive_batch() {
    std::string rest;
    expect(receive(store::Reply::kBatch, &rest), "a batch");
    store::Batch batch;
    constexpr size_t kHead = sizeof(store::MessageHead);
    expect(rest.size() >= sizeof batch - kHead + kNumSamples * sizeof(int64_t), "a whole index");
    std::memcpy(reinterpret_cast<std::byte*>(&batch) + kHead, rest.data(), sizeof batch - kHead);
    std::array<int64_t, kNumSamples> keys;
    std::memcpy(keys.data(), rest.data() + sizeof batch - kHead, sizeof keys);
    const store::BatchLayout layout(schema(), kNumSamples, kNumSteps[table_]);
    std::vector<std::byte> data(layout.num_bytes);
    expect(read(data.data(), data.size()), "a whole batch");
    lend(batch.lease, keys, data.data());
  }
  void refused() {
    std::string rest;
    expect(!receive(store::Reply::kBatch, &rest), "what is not legal is refused");
    end();
  }
};

class LibrarySampler final : public Client, private SamplerClient {
 public:
  LibrarySampler(Scene* scene, uint32_t table, Door door)
      : Client(scene), SamplerClient(scene, table), door_(door) {}
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
      if (is_used) {
        sampler_->ack(lease, priorities_of(which));
      } else {
        sampler_->give_back(lease);
      }
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
    store::SamplerSession session;
    if (door_ == Door::kLocal) {
      session = world().store.open_sampler(table_, kNumSamples, 0);
    } else {
      const std::array<int, 2> ends = ends_of_connection();
      const auto opened = world().server->open_sampler(ends[0], table_, kNumSamples, 0);
      session.channel = std::make_unique<store::RingChannel>(
          store::SessionAddress{ends[1], opened.memory_path, opened.layout});
    }
    sampler_.emplace(std::move(session), schema(), world().store.slab_map(0), kNumSamples,
                     kNumSteps[table_]);
  }
  void draw() {
    if (!world().can_draw(table_, kNumSamples)) return;
    const std::optional<store::Delivery> batch = sampler_->next(in_time());
    expect(batch.has_value(), "a batch in time");
    lend(batch->lease, batch->keys, batch->data.get());
  }

  const Door door_;
  std::optional<store::Sampler> sampler_;
};

}  // namespace tengen::fuzz::scene
