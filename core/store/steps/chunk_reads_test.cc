#include <vector>

#include "base/testing.h"
#include "store/steps/staging_testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// Samples a batch and acknowledges it. Checks how many of its chunks were in memory and on disk.
void check_draw(SmallWorld& world, uint32_t table, uint64_t num_hits, uint64_t num_misses,
                uint64_t num_loads) {
  const ChunkReads before = world.engine.chunk_reads(table);
  const uint64_t num_loads_before = world.tier.num_loads;
  const SessionId session = world.engine.begin_session();
  Loan loan;
  const uint32_t num_samples = static_cast<uint32_t>(num_hits + num_misses);
  TENGEN_CHECK(world.engine.sample(session, table, num_samples, &loan));
  TENGEN_CHECK(world.num_reads(table) == before.num_hits + before.num_misses);
  TENGEN_CHECK(world.wait(&loan) == Collected::kReady);
  world.engine.ack(session, loan.lease, {});
  const ChunkReads& now = world.engine.chunk_reads(table);
  TENGEN_CHECK(now.num_hits - before.num_hits == num_hits);
  TENGEN_CHECK(now.num_misses - before.num_misses == num_misses);
  TENGEN_CHECK(world.tier.num_loads - num_loads_before == num_loads);
}

// Raises the priorities of `count` items from `first` on, so that table 1 samples them next.
void raise(SmallWorld& world, uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) {
    // Serial numbers and slots are equal, because no item was removed.
    const int64_t key = key_of(static_cast<int64_t>(i), static_cast<uint32_t>(i));
    world.engine.table(1).set_priorities(std::vector{key}, std::vector{3e38});
  }
}

// Every chunk has one step, and item i is step i.
void check_where_chunks_were() {
  SmallWorld world(32, 1000);
  TableConfig config = table_of("t", "prioritized", 1000);
  config.max_times_sampled = 1;
  world.engine.add_table(table_of("other", "fifo", 1000), 0);
  world.engine.add_table(config, 0);
  fill(world, 1, 400);
  world.tier.end_all(world.rng, world.engine);
  raise(world, 392, 8);
  check_draw(world, 1, 8, 0, 0);  // the newest items are in memory
  raise(world, 0, 8);
  check_draw(world, 1, 0, 8, 8);
  raise(world, 388, 4);
  raise(world, 100, 4);
  check_draw(world, 1, 4, 4, 4);
  TENGEN_CHECK(world.num_reads(0) == 0);
}

// A chunk is loaded once, but counts for each sample that lies in it.
void check_chunk_of_several_samples() {
  SmallWorld world(8, 1000);
  world.engine.add_table(table_of("t", "fifo", 1000), 0);
  fill(world, 0, 100);
  world.tier.end_all(world.rng, world.engine);
  check_draw(world, 0, 0, 3, 1);
  check_draw(world, 0, 3, 0, 0);
}

void check_no_disk() {
  SmallWorld world(0, 0);
  world.engine.add_table(table_of("t", "fifo", 1000), 0);
  fill(world, 0, 10);
  Loan loan;
  TENGEN_CHECK(world.engine.sample(world.engine.begin_session(), 0, 4, &loan) && loan.is_ready);
  TENGEN_CHECK(world.num_reads(0) == 0);
}

}  // namespace

int main() {
  check_where_chunks_were();
  check_chunk_of_several_samples();
  check_no_disk();
  return 0;
}
