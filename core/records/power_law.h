#pragma once
// The size of the window of newest rows that a learner samples from, as in KataGo.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tengen {

// A window size that grows with a power of the number of items. WindowConfig in Python documents
// the formula.
//
// Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565), training details.
struct PowerLaw {
  uint64_t min_items = 1;
  uint64_t max_items = 20'000'000;
  double exponent = 0.65;
  double scale = 1.0;  // number of items after which the growth slows down
  double expand_per_item = 0.4;

  uint64_t window(uint64_t num_items) const {
    if (num_items <= min_items) return num_items;
    if (max_items == min_items) return max_items;
    const double n = static_cast<double>(num_items - min_items);
    const double grown = std::pow(n + scale, exponent) - std::pow(scale, exponent);
    double growth = expand_per_item * grown / (exponent * std::pow(scale, exponent - 1.0));
    // `growth` is NaN if `exponent` is so small that numerator and denominator are 0.
    if (std::isnan(growth)) growth = 0.0;
    const double size = std::min(static_cast<double>(min_items) + growth, 9e18);
    return std::min({num_items, max_items, static_cast<uint64_t>(size)});
  }
};

}  // namespace tengen
