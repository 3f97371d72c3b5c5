#pragma once
// A counter-based random number generator. A stream is a pure function of (seed, generation, game,
// ply, purpose), so results do not depend on threads, slots or the order of work. Source: Salmon et
// al. 2011, "Parallel random numbers: as easy as 1, 2, 3", Philox4x32-10. No std:: distribution is
// used, because the standard does not specify its output.

#include <array>
#include <cmath>
#include <cstdint>

#include "base/hash.h"

namespace tengen {

// The purpose of a random stream. The values must not change, because recorded runs depend on them.
enum class Purpose : uint32_t {
  kOpening = 1,
  kRootNoise = 2,
  kMoveChoice = 3,
  kPlayoutCap = 4,
  kGumbel = 5,
  kRollout = 6,
  kSampling = 7,
  kSymmetry = 8,
  kTest = 9,
  kPolicyOpening = 10,
  kResignation = 11,
  kReplay = 12,
  kVariant = 13,
  kSettlement = 14,
  kFork = 15,
  kLead = 16,
  kWindowPass = 17,
  kBook = 18,
};

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  Rng(uint64_t seed, uint64_t generation, uint64_t game, uint32_t ply, Purpose purpose)
      : key_{static_cast<uint32_t>(mix64(seed)), static_cast<uint32_t>(mix64(seed) >> 32)} {
    const uint64_t stream = mix64(mix64(generation + 0x632be59bd9b4e019ull) + game);
    const uint64_t place = mix64(stream + (uint64_t{ply} << 32 | static_cast<uint32_t>(purpose)));
    counter_ = {0, static_cast<uint32_t>(stream), static_cast<uint32_t>(place),
                static_cast<uint32_t>(place >> 32)};
  }

  uint32_t next32() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  uint64_t next64() {
    const uint64_t high = next32();
    return high << 32 | next32();
  }
  // Returns a uniform sample from [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(next64() >> 11) * 0x1.0p-53; }
  // Returns a uniform sample from (0, 1], whose logarithm is finite.
  double uniform_positive() { return 1.0 - uniform(); }
  // Returns an unbiased uniform sample from [0, bound), bound >= 1. Source: Lemire 2019, "Fast
  // random integer generation in an interval".
  uint32_t below(uint32_t bound) {
    uint64_t product = uint64_t{next32()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }
  // Returns a standard normal sample (Box-Muller; the second sample is discarded).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform_positive()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  // Returns a standard Gumbel sample, -log(-log(u)).
  double gumbel() {
    const double u = uniform_positive();
    return -std::log(-std::log(u < 1.0 ? u : 1.0 - 0x1.0p-53));
  }
  // Returns a sample from Gamma(alpha, 1), alpha > 0. Source: Marsaglia and Tsang 2000.
  double gamma(double alpha) {
    if (alpha < 1.0) {
      // Two statements, because the order of the two calls affects the result.
      const double above_one = gamma(alpha + 1.0);
      return above_one * std::pow(uniform_positive(), 1.0 / alpha);
    }
    const double d = alpha - 1.0 / 3.0;
    const double c = 1.0 / std::sqrt(9.0 * d);
    for (;;) {
      const double x = normal();
      const double v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
      if (v <= 0.0) continue;
      const double u = uniform_positive();
      if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace tengen
