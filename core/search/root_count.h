#pragma once
// What a root keeps where its subtree is thrown away.

#include <cstdint>

namespace tengen {

struct RootCount {
  uint32_t visits = 0;
  float value_sum = 0.0f;  // of the side to play

  friend bool operator==(const RootCount&, const RootCount&) = default;
};

}  // namespace tengen
