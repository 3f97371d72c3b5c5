#pragma once
// Evaluators that replace a network in tests and in benchmarks of the search.

#include <cstdint>

#include "base/hash.h"

namespace tengen {

// Computes a fixed pseudo-random evaluation of a position: logits in [0, 4), value in [-1, 1).
// Search trees become as deep as with a network, unlike with a uniform prior.
inline void hash_evaluate(const Key128& key, int num_actions, float* logits, float* value) {
  const auto seed = static_cast<uint32_t>(key.lo ^ (key.hi >> 32));
  for (int action = 0; action < num_actions; ++action) {
    uint32_t x = seed + static_cast<uint32_t>(action) * 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    // Converts from int32_t, because uint32_t takes several instructions on some processors.
    logits[action] = static_cast<float>(static_cast<int32_t>(x >> 8)) * 0x1.0p-22f;
  }
  const auto drawn = static_cast<int32_t>(mix64(key.hi) >> 40);
  *value = static_cast<float>(drawn) * 0x1.0p-23f - 1.0f;
}

// Computes a pseudo-random score for hash_evaluate(), in points of the side to move: mean in
// [-16, 16), standard deviation in [0, 16). The mean usually has the same sign as `value`.
inline void hash_score(const Key128& key, float value, float* score) {
  const uint64_t drawn = mix64(key.hi + 1);
  score[0] = 8.0f * value + static_cast<float>(drawn >> 40) * 0x1.0p-20f - 8.0f;
  score[1] = static_cast<float>(drawn >> 20 & 0xfffff) * 0x1.0p-16f;
}

// Writes equal logits (a uniform prior) and value 0.
inline void null_evaluate(int num_actions, float* logits, float* value) {
  for (int action = 0; action < num_actions; ++action) logits[action] = 0.0f;
  *value = 0.0f;
}

// Writes a score with mean 0 and standard deviation 0.
inline void null_score(float* score) { score[0] = score[1] = 0.0f; }

}  // namespace tengen
