#pragma once
// Averages the evaluations of a root over all symmetries of the board.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// Accumulates the evaluations of one root: action probabilities, value and score. S is the type of
// search.
template <class S>
class RootMean {
 public:
  void begin(S* search, int num_symmetries, size_t num_actions) {
    search_ = search;
    num_wanted_ = num_symmetries;
    num_sent_ = num_back_ = 0;
    policy_.assign(num_actions, 0.0f);
    value_ = score_[0] = score_[1] = 0.0f;
  }
  void clear() { search_ = nullptr; }

  S* search() const { return search_; }  // null if free
  // Whether another symmetry must be requested, and whether all requested evaluations have arrived.
  bool wants_more() const { return search_ != nullptr && num_sent_ < num_wanted_; }
  bool is_idle() const { return num_sent_ == num_back_; }
  // Returns the next symmetry to request.
  int take() { return num_sent_++; }

  // Adds the evaluation under one symmetry; `images` maps each action to its index in the logits.
  // Returns whether all evaluations have arrived.
  bool add(const float* logits, const uint16_t* images, float value, const float* score) {
    const size_t n = policy_.size();
    const float highest = *std::max_element(logits, logits + n);
    float total = 0.0f;
    for (size_t i = 0; i < n; ++i) total += std::exp(logits[i] - highest);
    for (size_t action = 0; action < n; ++action) {
      policy_[action] += std::exp(logits[images[action]] - highest) / total;
    }
    value_ += value;
    if (score != nullptr) {
      score_[0] += score[0];
      score_[1] += score[1];
    }
    return ++num_back_ == num_wanted_;
  }

  // Passes the mean to the search, with the logarithms of the probabilities as logits.
  void finish() {
    const float count = static_cast<float>(num_wanted_);
    constexpr float kLeast = 1e-30f;
    for (float& one : policy_) one = std::log(std::max(one / count, kLeast));
    score_[0] /= count;
    score_[1] /= count;
    S* search = search_;
    search_ = nullptr;
    search->accept(policy_.data(), nullptr, value_ / count, score_);
  }

 private:
  S* search_ = nullptr;
  int num_wanted_ = 0;
  int num_sent_ = 0;
  int num_back_ = 0;
  std::vector<float> policy_;
  float value_ = 0.0f;
  float score_[2] = {0.0f, 0.0f};
};

}  // namespace tengen
