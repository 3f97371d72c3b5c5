#include "replay/pool.h"

#include <unistd.h>

#include <filesystem>
#include <set>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using namespace tengen::replay;

namespace {

Schema schema_of(uint32_t step_bytes, uint32_t steps_per_chunk = 1) {
  return Schema({{"x", "u1", {step_bytes}, 0}}, steps_per_chunk);
}

// A budget is spent to the last slab and never beyond; what dies is used again.
void check_budget() {
  Memory memory("", 64 * 1000);
  Pool pool(schema_of(64), &memory, 0);
  std::set<uint32_t> slots;
  const uint32_t stream = pool.streams().open();
  while (const std::optional<uint32_t> slot = pool.take_chunk()) {
    TENGEN_CHECK(*slot == slots.size() && slots.insert(*slot).second);  // the lowest first
    pool.slots().slab(
        *slot / pool.slots().slots_per_slab())[*slot % pool.slots().slots_per_slab() * 64 + 63] =
        std::byte{1};
    pool.streams().append(stream, *slot);
  }
  TENGEN_CHECK(slots.size() == pool.slots().num_slots() && pool.slots().num_slots() >= 900);
  TENGEN_CHECK(memory.used_bytes() <= 64 * 1000 &&
               pool.slots().num_slots() / pool.slots().slots_per_slab() <= 16);
  pool.streams().release_before(stream, 10);
  std::set<uint32_t> again;
  while (const std::optional<uint32_t> slot = pool.take_chunk()) again.insert(*slot);
  TENGEN_CHECK(again.size() == 10);
  pool.return_chunk(*again.begin());
  TENGEN_CHECK(pool.take_chunk() == *again.begin() && !pool.take_chunk());
}

// Slabs are a share of a small budget, never less than a chunk, and of a limited size.
void check_slabs() {
  for (const uint64_t num_chunks : {1u, 16u}) {
    Memory memory("", 64 * num_chunks);
    Pool pool(schema_of(64), &memory, 0);
    for (uint64_t i = 0; i < num_chunks; ++i) TENGEN_CHECK(pool.take_chunk().has_value());
    TENGEN_CHECK(!pool.take_chunk() &&
                 pool.slots().num_slots() / pool.slots().slots_per_slab() == num_chunks);
  }
  Memory large("", uint64_t{1} << 40);
  TENGEN_CHECK(Pool(schema_of(1 << 10), &large, 1).slots().slots_per_slab() == 16 << 10);
  TENGEN_CHECK(large.used_bytes() == 0);  // none until a slot is taken
}

// Pools take slabs from each other's budget, first come first served.
void check_two_pools() {
  Memory memory("", 1 << 20);
  Pool small(schema_of(100), &memory, 0);
  Pool large(schema_of(50000, 2), &memory, 1);
  TENGEN_CHECK(large.take_chunk().has_value());
  while (small.take_chunk()) {
  }
  TENGEN_CHECK(!large.take_chunk() && memory.free_bytes() < large.schema().chunk_bytes());
  TENGEN_CHECK(throws([&] { Pool(schema_of(2 << 20), &memory, 2); }));
  // What is left is too small.
  TENGEN_CHECK(throws([&] { Pool(schema_of(50000, 2), &memory, 3); }));
}

void check_files() {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("tengen-pool-" + std::to_string(getpid())))
          .string();
  std::filesystem::create_directory(directory);
  {
    Memory memory(directory, 1 << 20);
    Pool pool(schema_of(1000), &memory, 3);
    const uint32_t slot = pool.slots().slots_per_slab() + 1;  // of the second slab
    while (*pool.take_chunk() != slot) {
    }
    pool.slots().slab(1)[pool.schema().chunk_bytes() + 7] = std::byte{42};
    const ipc::SharedMemory same =
        ipc::SharedMemory::open(directory + "/" + Slots::slab_name(3, 1));
    TENGEN_CHECK(same.data()[pool.schema().chunk_bytes() + 7] == std::byte{42});
  }
  // Slabs outlive the process that made them, and go on with what lay in them.
  Memory memory(directory, 1 << 20);
  Pool pool(schema_of(1000), &memory, 3);
  pool.begin_restore(2, {}, {}, 0);
  pool.end_restore({});
  TENGEN_CHECK(pool.slots().slab(1)[pool.schema().chunk_bytes() + 7] == std::byte{42});
  TENGEN_CHECK(pool.slots().num_slots() == 2 * pool.slots().slots_per_slab());
  // Those of another size do not.
  Memory larger(directory, 1 << 21);
  Pool other(schema_of(1000), &larger, 3);
  TENGEN_CHECK(throws([&] { other.take_chunk(); }));
  std::filesystem::remove_all(directory);
  TENGEN_CHECK(throws([&] { other.take_chunk(); }));  // there is no such folder
}

}  // namespace

int main() {
  check_budget();
  check_slabs();
  check_two_pools();
  check_files();
  return 0;
}
