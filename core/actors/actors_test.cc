#include <cmath>
#include <vector>

#include "actors/choice_draws.h"
#include "actors/episode_counts.h"
#include "actors/step_columns.h"
#include "base/testing.h"

using namespace tengen;

namespace {

void draws_choices() {
  TENGEN_CHECK(throws([] { ChoiceDraws({3, 0}); }));
  // The first part has choices with probabilities 1/4 and 3/4; the second part has a single choice.
  const ChoiceDraws draws({2, 1});
  const std::vector<float> logits = {0.0f, std::log(3.0f), 5.0f, 0.0f, std::log(3.0f), -5.0f};
  const std::vector<double> uniforms = {0.2499, 0.0, 0.9, 0.2501, 0.0, 0.9};
  std::vector<int64_t> choices(4, -1);
  std::vector<float> log_prob(2);
  draws.draw(logits, uniforms, 3, choices, log_prob);
  TENGEN_CHECK((choices == std::vector<int64_t>{0, 0, 1, 0}));
  TENGEN_CHECK(std::abs(log_prob[0] - std::log(0.25f)) < 1e-6f);
  TENGEN_CHECK(std::abs(log_prob[1] - std::log(0.75f)) < 1e-6f);

  // A choice whose probability underflows is never sampled. A number of 1 selects the last choice.
  const ChoiceDraws three({3});
  std::vector<int64_t> choice(1);
  std::vector<float> one(1);
  three.draw(std::vector<float>{-2000.0f, 0.0f, 0.0f}, std::vector<double>{0.0}, 1, choice, one);
  TENGEN_CHECK(choice[0] == 1);
  three.draw(std::vector<float>{0.0f, 0.0f, 0.0f}, std::vector<double>{1.0}, 1, choice, one);
  TENGEN_CHECK(choice[0] == 2);

  TENGEN_CHECK(draws.first_out_of_range(std::vector<int64_t>{1, 0, 0, 0}) == 2);
  TENGEN_CHECK(draws.first_out_of_range(std::vector<int64_t>{1, 0, 0, 1}) == 1);
  TENGEN_CHECK(draws.first_out_of_range(std::vector<int64_t>{-1, 0, 0, 0}) == 0);
}

void counts_episodes() {
  EpisodeCounts counts(2);
  const bool none[] = {false, false}, first[] = {true, false}, both[] = {true, true};
  const float rewards[] = {2.0f, -1.0f};
  const float nothing[] = {0.0f, 0.5f};
  counts.add(rewards, none, none, none);
  TENGEN_CHECK(counts.finished().empty() && counts.num_resets() == 0);
  counts.add(rewards, first, none, none);
  TENGEN_CHECK(counts.finished().size() == 1);
  TENGEN_CHECK(counts.finished()[0].episode_return == 4.0 && counts.finished()[0].length == 2);
  counts.add(nothing, none, none, first);
  TENGEN_CHECK(counts.finished().empty() && counts.num_resets() == 1);
  counts.add(rewards, none, both, none);
  TENGEN_CHECK(counts.finished().size() == 2);
  TENGEN_CHECK(counts.finished()[0].episode_return == 2.0 && counts.finished()[0].length == 1);
  TENGEN_CHECK(counts.finished()[1].episode_return == -2.5 && counts.finished()[1].length == 4);
}

void writes_columns() {
  std::vector<uint16_t> column(2 * 3 * 2);
  const StepColumn steps(reinterpret_cast<std::byte*>(column.data()), 3, 4);
  const uint16_t rows[] = {1, 2, 3, 4};
  const uint16_t value[] = {7, 8};
  steps.put(1, reinterpret_cast<const std::byte*>(rows), 2);
  steps.fill(2, reinterpret_cast<const std::byte*>(value), 2);
  TENGEN_CHECK((column == std::vector<uint16_t>{0, 0, 1, 2, 7, 8, 0, 0, 3, 4, 7, 8}));
}

}  // namespace

int main() {
  draws_choices();
  counts_episodes();
  writes_columns();
  return 0;
}
