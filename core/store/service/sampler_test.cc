#include "store/service/sampler.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

constexpr uint32_t kLength = 4;  // steps a chunk
constexpr uint32_t kSlots = 32;
constexpr uint32_t kSteps = 3;  // of a sample
constexpr uint64_t kNumBatches = Sampler::kMinAbsences + 4;
const Deadline kNever = Deadline::max();

// What a port does that has drawn all its batches ahead, or none.
class FakePort final : public SamplerPort {
 public:
  std::deque<Delivery> batches;
  bool is_ahead = true;

  bool next(Deadline, Delivery* delivery) override {
    if (batches.empty()) return false;
    *delivery = std::move(batches.front());
    batches.pop_front();
    return true;
  }
  const Delivery* peek() override {
    return is_ahead && !batches.empty() ? &batches.front() : nullptr;
  }
  void ack(uint64_t, std::span<const double>) override {}
  void give_back(uint64_t) override {}
  std::string waits() override { return ""; }
};

// Steps of noise in slots, and batches of runs of them.
struct Fixture {
  Fixture(uint64_t column_bytes, uint32_t stack, uint32_t batch)
      : schema({{"x", "u1", {static_cast<uint32_t>(column_bytes)}, 0, stack}, {"y", "i4", {}, 0}},
               kLength),
        memory(kSlots * schema.chunk_bytes()),
        num_samples(batch),
        port(new FakePort),
        sampler(std::unique_ptr<SamplerPort>(port), schema,
                SlabMap(kSlots, schema.chunk_bytes(), [this](uint32_t) { return memory.data(); }),
                num_samples, kSteps) {
    Rng rng(column_bytes, 0, 0, 0, Purpose::kTest);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(rng.below(256));
    for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
      Delivery delivery;
      delivery.lease = lease;
      for (uint32_t i = 0; i < num_samples; ++i) {
        for (uint32_t left = schema.num_context() + kSteps; left > 0;) {
          const uint32_t offset = rng.below(kLength);
          const uint32_t count = 1 + rng.below(std::min(left, kLength - offset));
          delivery.pieces.push_back({rng.below(kSlots), offset, count});
          left -= count;
        }
      }
      port->batches.push_back(delivery);
    }
  }

  // What the batch must be, as it lies in the slots now.
  std::vector<std::byte> expected(const Delivery& delivery) {
    const BatchLayout layout(schema, num_samples, kSteps);
    std::vector<std::byte> data(layout.num_bytes);
    std::byte* out[] = {data.data() + layout.offsets[0], data.data() + layout.offsets[1]};
    std::byte* base = memory.data();
    gather(schema, Slabs{{&base, 1}, kSlots, schema.chunk_bytes()}, delivery.pieces, kSteps, out);
    return data;
  }

  const Schema schema;
  std::vector<std::byte> memory;
  const uint32_t num_samples;
  FakePort* const port;
  Sampler sampler;
};

bool is_equal(Fixture& fixture, const Gathered& gathered, const std::vector<std::byte>& expected) {
  const std::vector<uint64_t>& offsets = fixture.sampler.offsets();
  const Column& x = fixture.schema.columns()[0];
  const uint64_t num_steps = uint64_t{fixture.num_samples} * kSteps;
  const auto same = [&](size_t c, uint64_t num_bytes) {
    return std::memcmp(gathered.data.get() + offsets[c], expected.data() + offsets[c], num_bytes) ==
           0;
  };
  return same(0, num_steps * x.num_bytes * x.stack) && same(1, num_steps * 4);
}

// Whether the next batch was gathered ahead, soon.
bool becomes_ready(const Sampler& sampler) {
  const Deadline end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!sampler.is_ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return sampler.is_ready();
}

// So long that a batch is gathered meanwhile.
void stay_away() { std::this_thread::sleep_for(2 * Sampler::kMinAway); }

// While the caller is away the next batch is gathered, all of it: what is written into its steps
// after that is not seen.
void check_ahead(uint64_t column_bytes, uint32_t stack, uint32_t num_samples) {
  Fixture fixture(column_bytes, stack, num_samples);
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    const std::vector<std::byte> expected = fixture.expected(fixture.port->batches.front());
    if (lease >= Sampler::kMinAbsences) {
      TENGEN_CHECK(becomes_ready(fixture.sampler));
      for (std::byte& byte : fixture.memory) byte ^= std::byte{255};
    } else {
      TENGEN_CHECK(!fixture.sampler.is_ready());
    }
    stay_away();
    const std::optional<Gathered> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && gathered->delivery.lease == lease);
    TENGEN_CHECK(is_equal(fixture, *gathered, expected));
  }
}

// A batch that is asked for while it is gathered is whole, and so is one that is gathered when the
// sampler goes.
void check_at_once(uint32_t num_samples) {
  Fixture fixture(3000, 2, num_samples);
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    const std::vector<std::byte> expected = fixture.expected(fixture.port->batches.front());
    const std::optional<Gathered> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && is_equal(fixture, *gathered, expected));
    if (lease != Sampler::kMinAbsences + 1) stay_away();
  }
  Fixture gone(3000, 2, num_samples);
  for (uint64_t lease = 0; lease < Sampler::kMinAbsences; ++lease) {
    stay_away();
    TENGEN_CHECK(gone.sampler.next(kNever));
  }
}

// Nothing is gathered ahead where nothing was drawn ahead, or a copy is shorter than a wake.
void check_never(bool is_ahead, uint32_t num_samples) {
  Fixture fixture(3000, 1, num_samples);
  fixture.port->is_ahead = is_ahead;
  for (uint64_t lease = 0; lease < kNumBatches; ++lease) {
    stay_away();
    TENGEN_CHECK(!fixture.sampler.is_ready());
    const std::vector<std::byte> expected = fixture.expected(fixture.port->batches.front());
    const std::optional<Gathered> gathered = fixture.sampler.next(kNever);
    TENGEN_CHECK(gathered && is_equal(fixture, *gathered, expected));
  }
  stay_away();
  TENGEN_CHECK(!fixture.sampler.is_ready() && !fixture.sampler.next(kAtOnce));
}

}  // namespace

int main() {
  check_ahead(3000, 1, 64);
  check_ahead(700, 3, 37);
  check_ahead(200'000, 1, 5);
  for (const uint32_t num_samples : {8u, 64u, 200u}) check_at_once(num_samples);
  check_never(false, 64);
  check_never(true, 5);
  return 0;
}
