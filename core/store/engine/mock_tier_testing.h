#pragma once
// A disk for tests that can lose rows or be full. Its transfers end in any order.

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/rng.h"
#include "base/testing.h"
#include "store/engine/engine.h"

namespace tengen::store::engine {

class MockTier final : public Tier {
 public:
  using Rows = std::map<std::pair<uint32_t, uint32_t>, std::vector<std::byte>>;  // by pool, place

  void reserve(size_t num_transfers) override { num_reserved += num_transfers; }
  void load(const Transfer& transfer) override { waiting.push_back({transfer, true}); }
  void save(const Transfer& transfer) override { waiting.push_back({transfer, false}); }

  // Ends one randomly chosen transfer.
  void end_one(Rng& rng, Engine& engine) {
    const size_t which = rng.below(static_cast<uint32_t>(waiting.size()));
    const auto [transfer, is_load] = waiting[which];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
    const std::pair row{transfer.pool, transfer.place};
    const auto checksum = [&] {
      return crc32c({reinterpret_cast<const char*>(transfer.memory), transfer.num_bytes});
    };
    if (is_load) {
      TENGEN_CHECK(rows->count(row) == 1);
      std::memcpy(transfer.memory, rows->at(row).data(), transfer.num_bytes);
      const bool is_good = bad.count(row) == 0;
      TENGEN_CHECK(checksum() == transfer.checksum || !is_good);
      engine.loaded(transfer.pool, transfer.chunk, {is_good ? "" : "row is bad", 0});
      ++num_loads;
    } else if (rows->size() >= max_rows && rows->count(row) == 0) {
      engine.saved(transfer.pool, transfer.chunk, {"no room", 0});
    } else {
      (*rows)[row].assign(transfer.memory, transfer.memory + transfer.num_bytes);
      engine.saved(transfer.pool, transfer.chunk, {"", checksum()});
      ++num_saves;
    }
    engine.advance(transfer.pool);
  }
  void end_all(Rng& rng, Engine& engine) {
    while (!waiting.empty()) end_one(rng, engine);
  }

  std::vector<std::pair<Transfer, bool>> waiting;  // transfers in progress; true means a load
  std::shared_ptr<Rows> rows = std::make_shared<Rows>();
  std::set<std::pair<uint32_t, uint32_t>> bad;
  size_t max_rows = SIZE_MAX;
  uint64_t num_reserved = 0;  // number of transfers for which callers have reserved memory
  uint64_t num_loads = 0;
  uint64_t num_saves = 0;
};

}  // namespace tengen::store::engine
