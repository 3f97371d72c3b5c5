#pragma once
// A table: items, each a run of steps, with a sampler, a remover, a capacity, a rate limiter and a
// bound on how often an item is used.
//
// Source: Cassirer et al. 2021, "Reverb: a framework for experience replay" (arXiv:2102.04736),
// section 3. Differs: a use counts when its consumer says so, not when it was drawn, so that a
// consumer that dies costs no use; items may be longer than what is drawn of them.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/state/log.h"
#include "store/state/rate_limiter.h"
#include "store/state/saved.h"
#include "store/tables/selector.h"

namespace tengen::store::engine {

struct NewItem {
  StepRange steps;
  double priority = 1.0;  // see kept_priority()
};

struct Sample {
  int64_t key;
  double probability;
  StepRange steps;  // num_steps of the table's config
};

struct TableConfig {
  std::string name;
  SelectorConfig sampler;
  SelectorConfig remover = selector_of("fifo");
  RateLimits limits;
  uint64_t max_items = 1'000'000;
  uint64_t max_steps = UINT64_MAX;  // of all items together: a capacity in bytes
  uint32_t max_times_sampled = 0;   // 0: no bound
  uint32_t num_steps = 1;           // a sample has so many, an item at least so many
  uint32_t max_loans = 1024;        // batches that a sampler may have at once

  // Samples of each item that inserts wait for, which will never come where the item leaves before;
  // 0 without a bound of uses, as other items are drawn in its place.
  uint32_t num_promised() const {
    const double most = std::min<double>(max_times_sampled, limits.samples_per_insert);
    return static_cast<uint32_t>(most);
  }
};

// The most items, and chunks of items, that one turn of a caller touches, so that other callers do
// not wait long; also the most samples of one batch. A caller with more to do goes on once others
// had their turn.
constexpr uint32_t kMaxSamples = 1 << 16;

// The most items that one call removes or gives back, for the same reason.
constexpr uint64_t kMaxAtOnce = 1000;

// For new items whose priority nobody knows yet: the greatest of the last N to 2 N priorities that
// were set, where N is the number of items, at least 1,000: so one outlier does not rank all later
// items. Until the first N were set, priorities of inserts count too. Later they do not: a new item
// that is given the greatest would keep it the greatest for ever.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", algorithm 1. Differs: there it never
// falls.
class GreatestPriority {
 public:
  void insert(double priority) {
    if (!is_begun_) before_ = std::max(before_, priority);
  }
  void set(double priority, uint64_t table_size) {
    now_ = std::max(now_, priority);
    if (++num_set_ < std::max(kLeast, table_size)) return;
    before_ = now_;
    now_ = 0.0;
    num_set_ = 0;
    is_begun_ = true;
  }
  // 0 where there was no priority.
  double value() const { return std::max(now_, before_); }

 private:
  static constexpr uint64_t kLeast = 1000;

  double now_ = 0.0;     // of the last num_set_
  double before_ = 0.0;  // of those before them, at first of inserts
  uint64_t num_set_ = 0;
  bool is_begun_ = false;  // whether N were set
};

// Told of the steps that items hold on to.
class StepHolder {
 public:
  virtual ~StepHolder() = default;
  // Counts what its calls have cost: each chunk that one held or let go.
  virtual uint64_t num_touched() const = 0;
  virtual void hold(const StepRange& steps) = 0;
  virtual void let_go(const StepRange& steps) = 0;
};

// One call's share of the removals that a caller makes in several.
class Turn {
 public:
  explicit Turn(const StepHolder& holder)
      : holder_(holder), end_(holder.num_touched() + kMaxSamples) {}
  bool is_over(uint64_t num_removed) const {
    return num_removed >= kMaxAtOnce || holder_.num_touched() >= end_;
  }

 private:
  const StepHolder& holder_;
  const uint64_t end_;
};

// Not thread-safe; no call blocks or scans. A key names one item. Two items that a table had at
// different times have the same key only if they took the same slot, and the number of inserts
// between them is a multiple of 2^28.
class Table {
 public:
  // `holder` and `log` outlive the table. `log` records every change to table `number` but draws
  // and their ends; null: none is recorded. Throws Error for a config that is refused.
  Table(TableConfig config, uint64_t seed, StepHolder* holder, Log* log = nullptr,
        uint32_t number = 0);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  const TableConfig& config() const { return config_; }
  uint64_t size() const { return remover_->size(); }
  uint64_t num_steps() const { return num_steps_; }  // of all items
  uint32_t num_eligible() const { return sampler_->size(); }
  // For new items; see GreatestPriority.
  double max_priority() const { return greatest_.value(); }
  const RateLimiter& limiter() const { return limiter_; }

  // How many of `wanted` inserts, or samples, are allowed now.
  uint64_t inserts_allowed(uint64_t wanted) const {
    return limiter_.inserts_allowed(wanted, size());
  }
  uint64_t samples_allowed(uint64_t wanted) const;

  // Adds an item, and removes others until it fits; returns its key. None where these are too many
  // for one call: then some are removed; call again. Precondition: inserts_allowed(1) == 1. Throws
  // Error for an item that never fits, and bad_alloc; without the item the table stays as it was,
  // but for others that made room.
  std::optional<int64_t> insert(const NewItem& item);
  // Draws samples; each is a use that is under way. Precondition: samples_allowed(out.size()) ==
  // out.size(). Changes nothing where it throws bad_alloc.
  void sample(std::span<Sample> out);
  // Says that samples were used: an item that reaches its bound of uses is removed. Keys of items
  // that are gone are left out.
  void commit(std::span<const int64_t> keys);
  // Says that samples were not used. Those of items that are gone stay counted.
  void give_back(std::span<const int64_t> keys);
  // Sets priorities; keys of items that are gone are left out. Throws Error, and changes nothing,
  // where kept_priority() refuses one.
  void set_priorities(std::span<const int64_t> keys, std::span<const double> priorities);
  // Removes an item; returns whether there was one with that key.
  bool erase(int64_t key);
  // Removes the item that the remover chooses. Precondition: size() >= 1.
  void remove_one();

  // Changes the limits of a table in use.
  void set_limits(const RateLimits& limits);
  // Changes the capacity. Items beyond it are removed by remove_some(), and by inserts.
  void set_capacity(uint64_t max_items, uint64_t max_steps);
  // Removes items that a smaller capacity has no place for, a bounded number a call. Returns
  // whether there are more.
  bool remove_some();

  // Goes on as a saved table. Begins anew: the random numbers, and max_priority(), which follows
  // from the items alone. Precondition: the table is new.
  void restore(const SavedTable& saved, uint64_t num_restarts);
  // Counts uses that were under way when the table was saved.
  void resume_uses(std::span<const int64_t> keys);

 private:
  struct Item {
    int64_t serial = -1;  // -1: the slot is free
    StepRange steps;
    float priority = 0.0f;
    uint32_t times_sampled = 0;
    uint32_t num_under_way = 0;
  };

  // The slot of a key, or none where the item is gone.
  std::optional<uint32_t> find(int64_t key) const;
  bool is_eligible(const Item& item) const {
    return config_.max_times_sampled == 0 ||
           item.times_sampled + item.num_under_way < config_.max_times_sampled;
  }
  bool is_full(uint64_t more_items, uint64_t more_steps) const {
    return size() + more_items > config_.max_items || num_steps_ + more_steps > config_.max_steps;
  }
  // Sees to it that items of so many slots come and go without more memory.
  void reserve(size_t num_slots);
  // Removes a bounded number of items. Returns whether there is room.
  bool make_room(uint64_t more_items, uint64_t more_steps);
  void remove(uint32_t slot);
  Sample to_sample(const Draw& draw, Rng& rng);
  Rng next_rng() { return Rng(seed_, num_calls_++, 0, 0, Purpose::kReplay); }

  TableConfig config_;
  const uint64_t seed_;
  StepHolder* const holder_;
  Log* const log_;
  const uint32_t number_;
  std::unique_ptr<Selector> sampler_;  // items that may be drawn
  std::unique_ptr<Selector> remover_;  // all items
  RateLimiter limiter_;
  std::vector<Item> items_;  // by slot
  std::vector<uint32_t> free_slots_;
  int64_t num_inserted_ = 0;
  uint64_t num_steps_ = 0;
  GreatestPriority greatest_;
  uint64_t num_calls_ = 0;   // calls that drew random numbers
  std::vector<Draw> draws_;  // of a batch, kept for their memory
  std::vector<uint32_t> slots_;
  std::vector<double> priorities_;
  std::vector<float> kept_;
};

}  // namespace tengen::store::engine
