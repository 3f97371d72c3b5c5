#include "store/steps/pool.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/testing.h"
#include "transport/small_folder_testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

Schema schema_of(uint32_t step_bytes, uint32_t steps_per_chunk = 1) {
  return Schema({{"x", "u1", {step_bytes}, 0}}, steps_per_chunk);
}

// A pool uses its budget up to the last slab and never exceeds it; freed slots are reused.
void check_budget() {
  Memory memory("", 64 * 1000);
  Pool pool(schema_of(64), &memory, 0);
  std::set<uint32_t> slots;
  const uint32_t stream = pool.streams().open();
  while (const std::optional<uint32_t> slot = pool.take_chunk()) {
    TENGEN_CHECK(*slot == slots.size() && slots.insert(*slot).second);  // in ascending order
    pool.slots().slab(
        *slot / pool.slots().slots_per_slab())[*slot % pool.slots().slots_per_slab() * 64 + 63] =
        std::byte{1};
    pool.streams().append(stream, *slot);
  }
  TENGEN_CHECK(slots.size() == pool.slots().num_slots() && pool.slots().num_slots() >= 900);
  TENGEN_CHECK(memory.used_bytes() <= 64 * 1000 &&
               pool.slots().num_slots() / pool.slots().slots_per_slab() <= 150);
  pool.streams().release_before(stream, 10);
  std::set<uint32_t> again;
  while (const std::optional<uint32_t> slot = pool.take_chunk()) again.insert(*slot);
  TENGEN_CHECK(again.size() == 10);
  pool.return_chunk(*again.begin());
  TENGEN_CHECK(pool.take_chunk() == *again.begin() && !pool.take_chunk());
}

// A slab is a fraction of a small budget, at least one chunk, and of limited size.
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
  TENGEN_CHECK(large.used_bytes() == 0);  // no memory is used until a slot is taken
}

// Each pool has its own part of memory, whichever pool fills first.
void check_two_pools() {
  Memory memory("", 1 << 20);
  Pool small(schema_of(100), &memory, 0);
  Pool large(schema_of(50000, 2), &memory, 1);
  uint64_t num_small = 0, num_large = 0;
  while (small.take_chunk()) ++num_small;
  while (large.take_chunk()) ++num_large;
  TENGEN_CHECK(num_small == 4096);  // slots of 128 bytes
  TENGEN_CHECK(num_large == 5);
  TENGEN_CHECK(num_small == small.slots().max_slots() && num_large == large.slots().max_slots());
  TENGEN_CHECK(throws([&] { Pool(schema_of(400 << 10), &memory, 2); }));
}

// If the file system is full, no chunk is available, and a reason is given.
void check_full_file_system() {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("tengen-full-" + std::to_string(getpid())))
          .string();
  std::filesystem::create_directory(directory);
  TENGEN_CHECK(throws([&] { Memory(directory, uint64_t{1} << 60); }));
  Memory memory(directory, 1 << 20);
  Pool pool(schema_of(1000), &memory, 0);
  TENGEN_CHECK(pool.take_chunk().has_value() && memory.trouble().empty());
  const uint64_t used = memory.used_bytes();
  // Blocks the path of the next slab.
  const std::string blocked = directory + "/" + Slots::slab_name(0, 1) + ".part";
  std::filesystem::create_directory(blocked);
  for (uint32_t i = 1; i < pool.slots().slots_per_slab(); ++i) TENGEN_CHECK(pool.take_chunk());
  for (int i = 0; i < 50; ++i) TENGEN_CHECK(!pool.take_chunk());
  TENGEN_CHECK(memory.used_bytes() == used && !memory.trouble().empty());
  std::filesystem::remove(blocked);
  int num_asked = 0;
  while (!pool.take_chunk()) TENGEN_CHECK(++num_asked < 100);
  TENGEN_CHECK(memory.used_bytes() > used && memory.trouble().empty());
  std::filesystem::remove_all(directory);
}

// The same with a real file system that other files fill.
void check_small_file_system() {
  transport::in_small_folder(4 << 20, [](const std::string& folder) {
    TENGEN_CHECK(throws([&] { Memory(folder, 5 << 20); }));
    Memory memory(folder, 3 << 20);
    Pool pool(schema_of(100'000), &memory, 0);
    TENGEN_CHECK(pool.take_chunk() == 0u);
    const std::string others = folder + "/others";
    std::ofstream(others) << std::string(2 << 20, 'x');
    uint32_t num_chunks = 1;
    while (const std::optional<uint32_t> chunk = pool.take_chunk()) {
      std::fill_n(pool.slots().at(*chunk), pool.schema().chunk_bytes(), std::byte{1});
      ++num_chunks;
    }
    TENGEN_CHECK(num_chunks > 10 && num_chunks < pool.slots().max_slots());
    TENGEN_CHECK(memory.trouble().find("enlarge it") != std::string::npos);
    std::filesystem::remove(others);
    int num_asked = 0;
    while (!pool.take_chunk()) TENGEN_CHECK(++num_asked < 100);
  });
}

void check_files() {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("tengen-pool-" + std::to_string(getpid())))
          .string();
  std::filesystem::create_directory(directory);
  {
    Memory memory(directory, 1 << 20);
    Pool pool(schema_of(1000), &memory, 3);
    const uint32_t slot = pool.slots().slots_per_slab() + 1;  // in the second slab
    while (*pool.take_chunk() != slot) {
    }
    pool.slots().slab(1)[pool.schema().chunk_bytes() + 7] = std::byte{42};
    const transport::SharedMemory same =
        transport::SharedMemory::open(directory + "/" + Slots::slab_name(3, 1));
    TENGEN_CHECK(same.data()[pool.schema().chunk_bytes() + 7] == std::byte{42});
  }
  // Slabs and their contents outlive the process that created them.
  Memory memory(directory, 1 << 20);
  Pool pool(schema_of(1000), &memory, 3);
  pool.begin_restore(2, {}, {}, 0);
  pool.end_restore({});
  TENGEN_CHECK(pool.slots().slab(1)[pool.schema().chunk_bytes() + 7] == std::byte{42});
  TENGEN_CHECK(pool.slots().num_slots() == 2 * pool.slots().slots_per_slab());
  // A slab of a different size is rejected.
  Memory larger(directory, 1 << 21);
  Pool other(schema_of(1000), &larger, 3);
  TENGEN_CHECK(!other.take_chunk() && !larger.trouble().empty());
  std::filesystem::remove_all(directory);
  for (int i = 0; i < 50; ++i) TENGEN_CHECK(!other.take_chunk());  // the folder does not exist
}

// If a slab is created for restored steps, each of its other slots is free exactly once.
void check_slots_after_a_loss() {
  Memory memory("", 64 * 4 * 128);
  Slots slots(&memory, 0, 64, nullptr);
  TENGEN_CHECK(slots.slots_per_slab() == 4);
  slots.begin_restore(0);
  const uint32_t restored = *slots.take();
  std::vector<bool> is_taken(slots.num_slots());
  is_taken[restored] = true;
  slots.end_restore(is_taken);
  TENGEN_CHECK(slots.num_taken() == 1);
  std::set<uint32_t> others = {restored};
  while (const std::optional<uint32_t> slot = slots.take()) {
    TENGEN_CHECK(others.insert(*slot).second);
  }
  TENGEN_CHECK(others.size() == slots.num_slots());
}

}  // namespace

int main() {
  check_budget();
  check_slabs();
  check_two_pools();
  check_full_file_system();
  check_small_file_system();
  check_files();
  check_slots_after_a_loss();
  return 0;
}
