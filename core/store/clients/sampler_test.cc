#include "store/clients/sampler.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "store/session/encoding.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

constexpr uint32_t kLength = 4;  // steps per chunk
constexpr uint32_t kSlots = 32;
constexpr uint32_t kSteps = 3;  // steps per sample
constexpr uint64_t kNumBatches = Sampler::kMinAbsences + 4;
const Deadline kNever = Deadline::max();

// A channel whose batches are all sampled ahead if `is_ahead`, and only on demand otherwise.
class FakeChannel final : public Channel {
 public:
  // The pieces of each batch; the index of a batch is its lease.
  std::vector<std::vector<Piece>> batches;
  bool is_ahead = true;

  uint32_t max_message() const override { return UINT32_MAX; }
  bool send(std::span<iovec>, Deadline, Urgency) override { return true; }
  void ring() override {}
  std::span<const std::byte> wait_for_reply(Deadline) override {
    if (num_taken_ == batches.size()) return {};
    const std::vector<Piece>& pieces = batches[num_taken_];
    reply_.resize(sizeof(Batch) + pieces.size() * sizeof(Piece));
    std::memcpy(put(reply_.data(), Batch{.lease = num_taken_}), pieces.data(),
                pieces.size() * sizeof(Piece));
    return reply_;
  }
  std::span<const std::byte> peek_reply() override {
    return is_ahead ? wait_for_reply(kAtOnce) : std::span<const std::byte>();
  }
  std::shared_ptr<std::byte> pop_reply() override {
    ++num_taken_;
    return nullptr;
  }
  bool wait_for_all(Deadline) override { return true; }
  std::string waits() override { return ""; }

 private:
  size_t num_taken_ = 0;
  std::vector<std::byte> reply_;
};

// Slots filled with random bytes, and batches of random runs of the steps in these slots.
struct Fixture {
  Fixture(uint64_t column_bytes, uint32_t batch)
      : schema({{"x", "u1", {static_cast<uint32_t>(column_bytes)}, 0}, {"y", "i4", {}, 0}},
               kLength),
        memory(kSlots * schema.chunk_bytes()),
        num_samples(batch),
        channel(new FakeChannel),
        sampler({std::unique_ptr<Channel>(channel), 1}, schema,
                SlabMap(kSlots, schema.chunk_bytes(), [this](uint32_t) { return memory.data(); }),
                num_samples, kSteps) {
    Rng rng(column_bytes, 0, 0, 0, Purpose::kTest);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(rng.below(256));
    for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
      std::vector<Piece>& pieces = channel->batches.emplace_back();
      for (uint32_t i = 0; i < num_samples; ++i) {
        for (uint32_t left = kSteps; left > 0;) {
          const uint32_t offset = rng.below(kLength);
          const uint32_t count = 1 + rng.below(std::min(left, kLength - offset));
          pieces.push_back({rng.below(kSlots), offset, count});
          left -= count;
        }
      }
    }
  }

  // Returns the batch that the pieces yield with the current contents of the slots.
  std::vector<std::byte> expected(const std::vector<Piece>& pieces) {
    const BatchLayout layout(schema, num_samples, kSteps);
    std::vector<std::byte> data(layout.num_bytes);
    std::byte* out[] = {data.data() + layout.offsets[0], data.data() + layout.offsets[1]};
    std::byte* base = memory.data();
    gather(schema, Slabs{{&base, 1}, kSlots, schema.chunk_bytes()}, pieces, out);
    return data;
  }

  const Schema schema;
  std::vector<std::byte> memory;
  const uint32_t num_samples;
  FakeChannel* const channel;
  Sampler sampler;
};

bool is_equal(Fixture& fixture, const Delivery& gathered, const std::vector<std::byte>& expected) {
  const std::vector<uint64_t>& offsets = fixture.sampler.offsets();
  const Column& x = fixture.schema.columns()[0];
  const uint64_t num_steps = uint64_t{fixture.num_samples} * kSteps;
  const auto same = [&](size_t c, uint64_t num_bytes) {
    return std::memcmp(gathered.data.get() + offsets[c], expected.data() + offsets[c], num_bytes) ==
           0;
  };
  return same(0, num_steps * x.num_bytes) && same(1, num_steps * 4);
}

// Returns whether the next batch is gathered ahead within 20 s.
bool becomes_ready(const Sampler& sampler) {
  const Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!sampler.is_ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return sampler.is_ready();
}

// Sleeps long enough that the sampler counts an absence.
void stay_away() { std::this_thread::sleep_for(2 * Sampler::kMinAway); }

// While the caller is away, the next batch is gathered completely: later writes to its steps do not
// change the batch.
void check_ahead(uint64_t column_bytes, uint32_t num_samples) {
  Fixture fixture(column_bytes, num_samples);
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    const std::vector<std::byte> expected = fixture.expected(fixture.channel->batches[lease]);
    if (lease >= Sampler::kMinAbsences) {
      TENGEN_CHECK(becomes_ready(fixture.sampler));
      for (std::byte& byte : fixture.memory) byte ^= std::byte{255};
    } else {
      TENGEN_CHECK(!fixture.sampler.is_ready());
    }
    stay_away();
    const std::optional<Delivery> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && gathered->lease == lease);
    TENGEN_CHECK(is_equal(fixture, *gathered, expected));
  }
}

// A batch is complete even if it is requested while it is being gathered. A sampler may be
// destroyed while it gathers a batch.
void check_at_once(uint32_t num_samples) {
  Fixture fixture(3000, num_samples);
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    const std::vector<std::byte> expected = fixture.expected(fixture.channel->batches[lease]);
    const std::optional<Delivery> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && is_equal(fixture, *gathered, expected));
    if (lease != Sampler::kMinAbsences + 1) stay_away();
  }
  Fixture gone(3000, num_samples);
  for (uint64_t lease = 0; lease < Sampler::kMinAbsences; ++lease) {
    stay_away();
    TENGEN_CHECK(gone.sampler.next(kNever));
  }
}

// A batch is not gathered ahead if it was not sampled ahead, or if it is small.
void check_never(bool is_ahead, uint32_t num_samples) {
  Fixture fixture(3000, num_samples);
  fixture.channel->is_ahead = is_ahead;
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    stay_away();
    TENGEN_CHECK(!fixture.sampler.is_ready());
    const std::vector<std::byte> expected = fixture.expected(fixture.channel->batches[lease]);
    const std::optional<Delivery> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && is_equal(fixture, *gathered, expected));
  }
  stay_away();
  TENGEN_CHECK(!fixture.sampler.is_ready() && !fixture.sampler.next(kAtOnce));
}

// A forked process has no gathering thread, and can still destroy its copy of the sampler.
void check_fork() {
  auto fixture = std::make_unique<Fixture>(3000, 64);
  for (uint64_t lease = 0; lease <= Sampler::kMinAbsences; ++lease) {
    stay_away();
    TENGEN_CHECK(fixture->sampler.next(kNever));
  }
  TENGEN_CHECK(becomes_ready(fixture->sampler));
  const pid_t child = fork();
  if (child == 0) {
    fixture.reset();
    _exit(0);
  }
  int status = 1;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

}  // namespace

int main() {
  check_ahead(3000, 64);
  check_ahead(700, 37);
  check_ahead(200'000, 5);
  for (const uint32_t num_samples : {8u, 64u, 200u}) check_at_once(num_samples);
  check_never(false, 64);
  check_never(true, 5);
  check_fork();
  return 0;
}
