#pragma once
// The evaluation of a root as the mean over all symmetries of the board.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// One root whose evaluations are gathered: probabilities of actions, value and score. S: a search.
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

  S* search() const { return search_; }  // null where it is free
  // Whether another symmetry may be asked for; whether none was that did not come back.
  bool wants_more() const { return search_ != nullptr && num_sent_ < num_wanted_; }
  bool is_idle() const { return num_sent_ == num_back_; }
  // The next symmetry to ask for.
  int take() { return num_sent_++; }

  // Takes the answer to one: `images` is where each action stands in the logits. Whether all came.
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

  // Hands the search the mean: logarithms of probabilities.
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
