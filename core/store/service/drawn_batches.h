#pragma once
// The batches of one sampler that were requested and not delivered yet: some wait for the rate
// limiter, some for steps from disk, some until the sampler acknowledges others.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "store/engine/engine.h"

namespace tengen::store {

// Delivers in the order of the draws. For one thread, which holds the store's lock where an Engine
// is passed.
class DrawnBatches {
 public:
  DrawnBatches(engine::SessionId session, uint32_t table, uint32_t num_samples,
               uint64_t num_asked = 0, uint64_t num_lent = 0)
      : session_(session),
        table_(table),
        num_samples_(num_samples),
        num_undrawn_(num_asked),
        num_lent_(num_lent) {}

  // Requests one more batch.
  void ask() { ++num_undrawn_; }
  // How many batches were requested and not delivered.
  uint64_t num_asked() const { return num_undrawn_ + drawn_.size(); }

  // Draws the requested batches, and returns the next loan, which the caller delivers; null where
  // none is ready yet. Valid until the next call. Throws Error where the loan's steps are lost and
  // the disk refuses damage.
  const engine::Loan* next(engine::Engine& engine) {
    while (true) {
      while (num_undrawn_ > 0 && !is_full(engine) &&
             engine.sample(session_, table_, num_samples_, &loan_)) {
        --num_undrawn_;
        has_changed_ = true;
        if (loan_.is_ready) return lend();
        drawn_.push_back(std::exchange(loan_, {}));
      }
      if (drawn_.empty()) return nullptr;
      switch (collect(engine)) {
        case engine::Collected::kNotYet:
          return nullptr;
        case engine::Collected::kReady:
          return lend();
        case engine::Collected::kLost:
          ++num_undrawn_;  // another one instead
      }
    }
  }
  // Says that a delivered batch was acknowledged or given back.
  void take_back() { --num_lent_; }
  // Whether anything was drawn or delivered since the last call.
  bool take_changed() { return std::exchange(has_changed_, false); }

  // What the next batch waits for, for people; empty where none is requested.
  std::string waits(const engine::Engine& engine) const {
    if (!drawn_.empty()) return "sample waits: its steps are read from disk";
    if (num_undrawn_ > 0 && is_full(engine)) {
      return "sample waits: " + std::to_string(num_lent_) + " batches are not acknowledged";
    }
    return num_undrawn_ > 0 ? engine.sample_waits(table_, num_samples_) : "";
  }

 private:
  // Whether the sampler has so many batches that it must return one before another is drawn.
  bool is_full(const engine::Engine& engine) const {
    return num_lent_ + drawn_.size() >= engine.table(table_).config().max_loans;
  }
  const engine::Loan* lend() {
    ++num_lent_;
    return &loan_;
  }
  // Collects the oldest draw, and removes it from the queue unless its steps are still on their
  // way.
  engine::Collected collect(engine::Engine& engine) {
    loan_ = std::move(drawn_.front());
    drawn_.pop_front();
    const engine::Collected collected = engine.collect(&loan_);
    if (collected == engine::Collected::kNotYet) {
      drawn_.push_front(std::exchange(loan_, {}));
    } else {
      has_changed_ = true;
    }
    return collected;
  }

  const engine::SessionId session_;
  const uint32_t table_;
  const uint32_t num_samples_;
  uint64_t num_undrawn_;
  uint64_t num_lent_;  // delivered, and not acknowledged or given back
  std::deque<engine::Loan> drawn_;
  engine::Loan loan_;
  bool has_changed_ = false;
};

}  // namespace tengen::store
