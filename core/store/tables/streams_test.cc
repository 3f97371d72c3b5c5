#include "store/tables/streams.h"

#include <map>
#include <set>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

void check_pieces() {
  Streams streams(4);
  const uint32_t stream = streams.open();
  for (const uint32_t slot : {9u, 5u, 7u}) streams.append(stream, slot);
  std::vector<Piece> pieces;
  streams.locate({3, stream, 7}, &pieces);
  TENGEN_CHECK(pieces.size() == 3);
  TENGEN_CHECK(pieces[0].slot == 9 && pieces[0].offset == 3 && pieces[0].num_steps == 1);
  TENGEN_CHECK(pieces[1].slot == 5 && pieces[1].offset == 0 && pieces[1].num_steps == 4);
  TENGEN_CHECK(pieces[2].slot == 7 && pieces[2].offset == 0 && pieces[2].num_steps == 2);
  TENGEN_CHECK(streams.contains({11, stream, 1}) && !streams.contains({11, stream, 2}));
  TENGEN_CHECK(!streams.contains({0, stream, 0}) && !streams.contains({0, stream + 1, 1}));
}

// A chunk lives until its last holder releases it, in any order of releases.
void check_lives() {
  Streams streams(2);
  const uint32_t stream = streams.open();
  for (uint32_t slot = 0; slot < 4; ++slot) streams.append(stream, slot);
  const StepRange item{2, stream, 3};  // lies in chunks 1 and 2
  streams.hold(item);
  streams.release_before(stream, 5);  // chunks 0 and 1 completely
  TENGEN_CHECK(streams.take_free_slots() == std::vector<uint32_t>{0});
  TENGEN_CHECK(!streams.contains({1, stream, 1}) && streams.contains(item));
  streams.close(stream);
  TENGEN_CHECK(streams.take_free_slots() == std::vector<uint32_t>{3});
  TENGEN_CHECK(!streams.contains({6, stream, 1}) && streams.num_chunks() == 2);
  streams.let_go(item);
  TENGEN_CHECK(streams.take_free_slots() == (std::vector<uint32_t>{1, 2}));
  TENGEN_CHECK(streams.num_chunks() == 0);
  TENGEN_CHECK(streams.open() == stream);  // the index is reused
}

// Compares random writers and holders with a count of holders per slot.
void check_random(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  const uint32_t length = 1 + rng.below(5);
  Streams streams(length);
  struct Known {
    std::vector<uint32_t> slots;  // indexed by chunk
    uint64_t released = 0;        // number of chunks
  };
  std::map<uint32_t, Known> open;
  std::map<uint32_t, int> holders;  // number of holders by slot
  std::vector<std::pair<StepRange, std::vector<uint32_t>>> held;
  uint32_t next_slot = 0;
  std::set<uint32_t> expected_free;
  const auto drop = [&](uint32_t slot) {
    if (--holders[slot] == 0) expected_free.insert(slot);
  };
  for (int step = 0; step < 3000; ++step) {
    const uint32_t action = rng.below(6);
    if (open.empty() || (action == 0 && open.size() < 5)) {
      open[streams.open()] = {};
    }
    auto it = open.begin();
    std::advance(it, rng.below(static_cast<uint32_t>(open.size())));
    auto& [stream, known] = *it;
    const uint64_t count = known.slots.size();
    if (action <= 2) {
      holders[next_slot] = 1;
      known.slots.push_back(next_slot);
      streams.append(stream, next_slot++);
    } else if (action == 3 && known.released < count) {
      const uint64_t first = known.released * length +
                             rng.below(static_cast<uint32_t>((count - known.released) * length));
      const uint32_t most = static_cast<uint32_t>(count * length - first);
      const StepRange range{first, stream, 1 + rng.below(most)};
      if (!streams.contains(range)) {
        TENGEN_CHECK(first / length < known.released);
        continue;
      }
      streams.hold(range);
      std::vector<uint32_t> slots;
      for (uint64_t c = first / length; c <= (first + range.num_steps - 1) / length; ++c) {
        slots.push_back(known.slots[c]);
        ++holders[known.slots[c]];
      }
      held.push_back({range, slots});
    } else if (action == 4 && rng.below(3) == 0) {
      for (; known.released < count; ++known.released) drop(known.slots[known.released]);
      streams.close(stream);
      open.erase(it);
    } else if (action == 4) {
      const uint64_t to = rng.below(static_cast<uint32_t>(count * length + 1));
      streams.release_before(stream, to);
      for (; known.released < to / length; ++known.released) drop(known.slots[known.released]);
    } else if (!held.empty()) {
      const size_t which = rng.below(static_cast<uint32_t>(held.size()));
      const StepRange& range = held[which].first;
      std::vector<Piece> pieces;
      streams.locate(range, &pieces);
      TENGEN_CHECK(pieces.size() == held[which].second.size());
      uint64_t num_steps = 0;
      for (size_t i = 0; i < pieces.size(); ++i) {
        TENGEN_CHECK(pieces[i].slot == held[which].second[i]);
        num_steps += pieces[i].num_steps;
      }
      TENGEN_CHECK(num_steps == range.num_steps);
      streams.let_go(held[which].first);
      for (const uint32_t slot : held[which].second) drop(slot);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
    for (const uint32_t slot : streams.take_free_slots()) {
      TENGEN_CHECK(expected_free.erase(slot) == 1);
    }
    TENGEN_CHECK(expected_free.empty());
  }
}

}  // namespace

int main() {
  check_pieces();
  check_lives();
  for (uint64_t seed = 0; seed < 40; ++seed) check_random(seed);
  return 0;
}
