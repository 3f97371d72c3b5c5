#include "store/tables/table.h"

#include <algorithm>

#include "base/error.h"
#include "store/tables/slot_set.h"

namespace tengen::store::engine {
namespace {

constexpr size_t kMinSlots = 16;

void check_capacity(uint64_t max_items, uint64_t max_steps, uint32_t num_steps) {
  check(max_items >= 1 && max_items <= kMaxItems, "max_items", max_items,
        "must be at least 1 and below 2^28; use several tables");
  check(max_steps >= num_steps, "max_steps", max_steps, "must fit one item; raise the capacity");
}

}  // namespace

Table::Table(TableConfig config, uint64_t seed, StepHolder* holder, Log* log, uint32_t number)
    : config_(std::move(config)),
      seed_(seed),
      holder_(holder),
      log_(log),
      number_(number),
      sampler_(make_selector(config_.sampler)),
      remover_(make_selector(config_.remover)),
      limiter_(config_.limits) {
  check(config_.num_steps >= 1, "num_steps", config_.num_steps, "must be at least 1; raise it");
  check_capacity(config_.max_items, config_.max_steps, config_.num_steps);
}

Table::~Table() {
  for (const Item& item : items_) {
    if (item.serial >= 0) holder_->let_go(item.steps);
  }
}

uint64_t Table::samples_allowed(uint64_t wanted) const {
  uint64_t allowed = limiter_.samples_allowed(wanted, size());
  if (config_.max_times_sampled == 0) return sampler_->size() == 0 ? 0 : allowed;
  // Every item in the sampler has at least one use left, so this many samples cannot fail.
  return std::min<uint64_t>(allowed, sampler_->size());
}

std::optional<int64_t> Table::insert(const NewItem& item) {
  check(item.steps.num_steps >= config_.num_steps, "steps", item.steps.num_steps,
        "must be at least the table's num_steps; insert longer items");
  check(item.steps.num_steps <= config_.max_steps, "steps", item.steps.num_steps,
        "must be at most the table's capacity; raise it");
  const float priority = kept_priority(item.priority);
  if (free_slots_.empty() && items_.size() == items_.capacity()) {
    reserve(std::max(kMinSlots, 2 * items_.size()));
  }
  if (log_ != nullptr) log_->reserve(sizeof(event::Inserted));
  // Holds the steps first, because an item removed to make room may be their last holder.
  holder_->hold(item.steps);
  bool has_room = false;
  try {
    has_room = make_room(1, item.steps.num_steps);
  } catch (...) {
    holder_->let_go(item.steps);
    throw;
  }
  if (!has_room) {
    holder_->let_go(item.steps);
    return std::nullopt;
  }
  const uint32_t slot = take_slot(&items_, &free_slots_);
  const int64_t serial = num_inserted_++;
  items_[slot] = {serial, item.steps, priority, 0, 0};
  num_steps_ += item.steps.num_steps;
  remover_->insert(slot, serial, priority);
  sampler_->insert(slot, serial, priority);
  greatest_.insert(priority);
  limiter_.insert(1);
  const int64_t key = key_of(serial, slot);
  if (log_ != nullptr) {
    log_->add(event::Inserted{key, item.steps, number_, 0, priority, 0});
  }
  return key;
}

void Table::sample(std::span<Sample> out) {
  Rng rng = next_rng();
  if (config_.max_times_sampled == 0) {
    draws_.resize(out.size());
    sampler_->draw_batch(rng, draws_);
    limiter_.sample(out.size());
    // Prefetches the items, because their cache lines were probably not read recently.
    for (const Draw& draw : draws_) __builtin_prefetch(&items_[draw.slot], 1);
    for (size_t i = 0; i < out.size(); ++i) out[i] = to_sample(draws_[i], rng);
    return;
  }
  limiter_.sample(out.size());
  for (Sample& sample : out) {
    // Counts the use in flight, so that the next sample takes it into account.
    const Draw draw = sampler_->draw(rng);
    sample = to_sample(draw, rng);
    if (!is_eligible(items_[draw.slot])) sampler_->remove(draw.slot);
  }
}

Sample Table::to_sample(const Draw& draw, Rng& rng) {
  Item& item = items_[draw.slot];
  ++item.num_under_way;
  // Samples a range of the configured length from a longer item, uniformly.
  StepRange steps = item.steps;
  const uint32_t num_starts = steps.num_steps - config_.num_steps + 1;
  if (num_starts > 1) steps.first += rng.below(num_starts);
  steps.num_steps = config_.num_steps;
  return {key_of(item.serial, draw.slot), draw.probability / num_starts, steps};
}

void Table::commit(std::span<const int64_t> keys) {
  for (const int64_t key : keys) {
    const std::optional<uint32_t> slot = find(key);
    if (!slot) continue;
    Item& item = items_[*slot];
    --item.num_under_way;
    ++item.times_sampled;
    if (config_.max_times_sampled != 0 && item.times_sampled >= config_.max_times_sampled) {
      remove(*slot);
    }
  }
}

void Table::give_back(std::span<const int64_t> keys) {
  for (const int64_t key : keys) {
    // Skips removed items. Their uses stay counted, because they will never come.
    const std::optional<uint32_t> slot = find(key);
    if (!slot) continue;
    limiter_.give_back(1);
    Item& item = items_[*slot];
    --item.num_under_way;
    if (!sampler_->contains(*slot)) sampler_->insert(*slot, item.serial, item.priority);
  }
}

void Table::set_priorities(std::span<const int64_t> keys, std::span<const double> priorities) {
  kept_.resize(priorities.size());
  slots_.reserve(priorities.size());
  priorities_.reserve(priorities.size());
  std::transform(priorities.begin(), priorities.end(), kept_.begin(), kept_priority);
  if (log_ != nullptr) {
    log_->add(event::PrioritiesSet{number_, static_cast<uint32_t>(keys.size())}, keys,
              std::span<const float>(kept_));
  }
  slots_.clear();
  priorities_.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::optional<uint32_t> slot = find(keys[i]);
    if (!slot) continue;
    items_[*slot].priority = kept_[i];
    greatest_.set(kept_[i], size());
    slots_.push_back(*slot);
    priorities_.push_back(kept_[i]);
  }
  remover_->set_priorities(slots_, priorities_);
  size_t kept = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!sampler_->contains(slots_[i])) continue;
    slots_[kept] = slots_[i];
    priorities_[kept++] = priorities_[i];
  }
  slots_.resize(kept);
  priorities_.resize(kept);
  sampler_->set_priorities(slots_, priorities_);
}

bool Table::erase(int64_t key) {
  const std::optional<uint32_t> slot = find(key);
  if (slot) remove(*slot);
  return slot.has_value();
}

void Table::remove_one() {
  Rng rng = next_rng();
  remove(remover_->draw(rng).slot);
}

void Table::set_limits(const RateLimits& limits) {
  limiter_.set_limits(limits);
  config_.limits = limits;
  if (log_ != nullptr) log_->add(event::LimitsSet{number_, limits});
}

void Table::set_capacity(uint64_t max_items, uint64_t max_steps) {
  check_capacity(max_items, max_steps, config_.num_steps);
  if (log_ != nullptr) log_->add(event::CapacitySet{number_, max_items, max_steps});
  config_.max_items = max_items;
  config_.max_steps = max_steps;
}

bool Table::remove_some() {
  make_room(0, 0);
  return is_full(0, 0);
}

void Table::restore(const SavedTable& saved, uint64_t num_restarts) {
  reserve(std::max(kMinSlots, saved.items.size()));
  items_.resize(saved.items.size());
  std::vector<uint32_t> by_age;
  for (uint32_t slot = 0; slot < items_.size(); ++slot) {
    const SavedItem& item = saved.items[slot];
    if (item.key < 0) {
      free_slots_.push_back(slot);
      continue;
    }
    items_[slot] = {serial_before(saved.num_serials, item.key), item.steps, item.priority,
                    item.times_sampled,
                    /*num_under_way=*/0};
    by_age.push_back(slot);
  }
  std::sort(by_age.begin(), by_age.end(),
            [&](uint32_t a, uint32_t b) { return items_[a].serial < items_[b].serial; });
  for (const uint32_t slot : by_age) {
    const Item& item = items_[slot];
    holder_->hold(item.steps);
    num_steps_ += item.steps.num_steps;
    remover_->insert(slot, item.serial, item.priority);
    greatest_.insert(item.priority);
    if (is_eligible(item)) sampler_->insert(slot, item.serial, item.priority);
  }
  limiter_.restore(saved.num_inserts, saved.num_samples);
  num_inserted_ = saved.num_serials;
  // Continues with random numbers that were not used before the restart.
  num_calls_ = num_restarts << 40;
  // Removes items until the table fits, because the capacity may have changed meanwhile.
  while (!make_room(0, 0)) {
  }
}

void Table::resume_uses(std::span<const int64_t> keys) {
  for (const int64_t key : keys) {
    const std::optional<uint32_t> slot = find(key);
    if (!slot) continue;
    ++items_[*slot].num_under_way;
    if (!is_eligible(items_[*slot]) && sampler_->contains(*slot)) sampler_->remove(*slot);
  }
}

std::optional<uint32_t> Table::find(int64_t key) const {
  const uint32_t slot = slot_of(key);
  if (slot >= items_.size() || items_[slot].serial < 0) return std::nullopt;
  return key_of(items_[slot].serial, slot) == key ? std::optional(slot) : std::nullopt;
}

void Table::reserve(size_t num_slots) {
  remover_->reserve(static_cast<uint32_t>(num_slots));
  sampler_->reserve(static_cast<uint32_t>(num_slots));
  free_slots_.reserve(num_slots);
  items_.reserve(num_slots);  // last, because its capacity implies that of the other vectors
}

bool Table::make_room(uint64_t more_items, uint64_t more_steps) {
  if (!is_full(more_items, more_steps)) return true;
  Rng rng = next_rng();
  const Turn turn(*holder_);
  for (uint64_t i = 0; size() > 0 && is_full(more_items, more_steps); ++i) {
    if (turn.is_over(i)) return false;
    remove(remover_->draw(rng).slot);
  }
  return true;
}

void Table::remove(uint32_t slot) {
  Item& item = items_[slot];
  const uint32_t num_used = item.times_sampled + item.num_under_way;
  const uint32_t num_promised = config_.num_promised();
  const uint32_t num_lost = num_promised > num_used ? num_promised - num_used : 0;
  if (log_ != nullptr) log_->add(event::Removed{key_of(item.serial, slot), number_, num_lost});
  limiter_.sample(num_lost);
  remover_->remove(slot);
  if (sampler_->contains(slot)) sampler_->remove(slot);
  num_steps_ -= item.steps.num_steps;
  holder_->let_go(item.steps);
  item.serial = -1;
  free_slots_.push_back(slot);
}

}  // namespace tengen::store::engine
