#pragma once
// A table of items, which are ranges of steps. A table has a sampler, a remover, a capacity, a rate
// limiter, and a maximum number of uses per item.
//
// Source: Cassirer et al. 2021, "Reverb: a framework for experience replay" (arXiv:2102.04736),
// section 3. Differs: a use counts when its consumer acknowledges it and not when it is sampled, so
// that a consumer that dies uses up nothing; items may be longer than the samples taken from them.

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
  StepRange steps;  // of num_steps steps, as in the table's config
};

struct TableConfig {
  std::string name;
  SelectorConfig sampler;
  SelectorConfig remover = selector_of("fifo");
  RateLimits limits;
  uint64_t max_items = 1'000'000;
  uint64_t max_steps = UINT64_MAX;  // total of all items; acts as a capacity in bytes
  uint32_t max_times_sampled = 0;   // 0: no limit
  uint32_t num_steps = 1;           // steps per sample; an item has at least as many
  uint32_t max_loans = 1024;        // maximum batches on loan to one sampler

  // The number of samples per item that inserts wait for. They never come if the item is removed
  // first. 0 without a maximum number of uses, because other items are then sampled instead.
  uint32_t num_promised() const {
    const double most = std::min<double>(max_times_sampled, limits.samples_per_insert);
    return static_cast<uint32_t>(most);
  }
};

// The maximum number of items, and of chunks of items, that a caller touches in one turn, so that
// other callers do not wait long. Also the maximum number of samples per batch. A caller with more
// to do continues after the others had their turn.
constexpr uint32_t kMaxSamples = 1 << 16;

// The maximum number of items that one call removes or gives back, to keep calls short.
constexpr uint64_t kMaxAtOnce = 1000;

// The priority of new items if it is not known yet: the maximum of the last N to 2 N priorities
// that were set, where N is the number of items, but at least 1,000. So an outlier does not
// determine the rank of all later items. Until N priorities have been set, the priorities of
// inserts count too. After that they do not, because new items that get the maximum would preserve
// it forever.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", algorithm 1. Differs: in the paper,
// the maximum never falls.
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
  // Returns the priority for new items; 0 if there was no priority yet.
  double value() const { return std::max(now_, before_); }

 private:
  static constexpr uint64_t kLeast = 1000;

  double now_ = 0.0;     // maximum of the last num_set_ priorities
  double before_ = 0.0;  // maximum of the priorities before them; at first, of inserts
  uint64_t num_set_ = 0;
  bool is_begun_ = false;  // whether N priorities have been set
};

// Receives the steps that items hold and release.
class StepHolder {
 public:
  virtual ~StepHolder() = default;
  // The total cost of all calls: the number of chunks that they held or let go.
  virtual uint64_t num_touched() const = 0;
  virtual void hold(const StepRange& steps) = 0;
  virtual void let_go(const StepRange& steps) = 0;
};

// Limits the work of one call, if a caller spreads removals over several calls.
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

// A table of items. Not thread-safe; no call blocks or scans. A key identifies one item. Two items
// of a table at different times have the same key only if they used the same slot, and the number
// of inserts between them is a multiple of 2^28.
class Table {
 public:
  // `holder` and `log` must outlive the table. `log` records every change to table `number` except
  // samples and their ends, or nothing if null. Throws Error if the config is invalid.
  Table(TableConfig config, uint64_t seed, StepHolder* holder, Log* log = nullptr,
        uint32_t number = 0);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  const TableConfig& config() const { return config_; }
  uint64_t size() const { return remover_->size(); }
  uint64_t num_steps() const { return num_steps_; }  // steps of all items
  uint32_t num_eligible() const { return sampler_->size(); }
  // The priority for new items; see GreatestPriority.
  double max_priority() const { return greatest_.value(); }
  const RateLimiter& limiter() const { return limiter_; }

  // The number of inserts, or samples, that are allowed now, at most `wanted`.
  uint64_t inserts_allowed(uint64_t wanted) const {
    return limiter_.inserts_allowed(wanted, size());
  }
  uint64_t samples_allowed(uint64_t wanted) const;

  // Adds an item and removes others until it fits. Returns its key, or none if one call cannot
  // remove enough; then call it again. Precondition: inserts_allowed(1) == 1. Throws Error if the
  // item can never fit, and bad_alloc; then the table changes only by the items that were removed.
  std::optional<int64_t> insert(const NewItem& item);
  // Samples items; each sample is a use in flight. Precondition: samples_allowed(out.size()) ==
  // out.size(). Changes nothing if it throws bad_alloc.
  void sample(std::span<Sample> out);
  // Acknowledges that samples were used: an item that reaches its maximum number of uses is
  // removed. Skips keys of removed items.
  void commit(std::span<const int64_t> keys);
  // Gives back samples that were not used. Samples of removed items stay counted.
  void give_back(std::span<const int64_t> keys);
  // Sets priorities; skips keys of removed items. Throws Error, and changes nothing, if
  // kept_priority() rejects a priority.
  void set_priorities(std::span<const int64_t> keys, std::span<const double> priorities);
  // Removes an item. Returns whether an item with that key existed.
  bool erase(int64_t key);
  // Removes the item that the remover chooses. Precondition: size() >= 1.
  void remove_one();

  // Changes the limits of a table in use.
  void set_limits(const RateLimits& limits);
  // Changes the capacity. Items beyond it are removed by remove_some(), and by inserts.
  void set_capacity(uint64_t max_items, uint64_t max_steps);
  // Removes items beyond a reduced capacity, a bounded number per call. Returns whether more
  // remain.
  bool remove_some();

  // Restores a saved table. The random numbers start anew, and so does max_priority(), which
  // follows from the items alone. Precondition: the table is new.
  void restore(const SavedTable& saved, uint64_t num_restarts);
  // Counts uses that were in flight when the table was saved.
  void resume_uses(std::span<const int64_t> keys);

 private:
  struct Item {
    int64_t serial = -1;  // -1 if the slot is free
    StepRange steps;
    float priority = 0.0f;
    uint32_t times_sampled = 0;
    uint32_t num_under_way = 0;
  };

  // Returns the slot of a key, or none if the item is gone.
  std::optional<uint32_t> find(int64_t key) const;
  bool is_eligible(const Item& item) const {
    return config_.max_times_sampled == 0 ||
           item.times_sampled + item.num_under_way < config_.max_times_sampled;
  }
  bool is_full(uint64_t more_items, uint64_t more_steps) const {
    return size() + more_items > config_.max_items || num_steps_ + more_steps > config_.max_steps;
  }
  // Reserves memory, so that `num_slots` items can come and go without allocation.
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
  std::unique_ptr<Selector> sampler_;  // items that may be sampled
  std::unique_ptr<Selector> remover_;  // all items
  RateLimiter limiter_;
  std::vector<Item> items_;  // by slot
  std::vector<uint32_t> free_slots_;
  int64_t num_inserted_ = 0;
  uint64_t num_steps_ = 0;
  GreatestPriority greatest_;
  uint64_t num_calls_ = 0;   // calls that used random numbers
  std::vector<Draw> draws_;  // samples of a batch; reused to save allocations
  std::vector<uint32_t> slots_;
  std::vector<double> priorities_;
  std::vector<float> kept_;
};

}  // namespace tengen::store::engine
