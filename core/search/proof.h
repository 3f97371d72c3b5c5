#pragma once
// The proven value of a position.

#include <cstdint>

namespace tengen {

// The exact game value of a position for its side to play, if known.
enum class Proof : uint8_t { kUnknown = 0, kLoss = 1, kDraw = 2, kWin = 3 };

constexpr float proof_value(Proof proof) {
  return proof == Proof::kWin ? 1.0f : proof == Proof::kLoss ? -1.0f : 0.0f;
}
constexpr Proof opposite(Proof proof) {
  return proof == Proof::kWin ? Proof::kLoss : proof == Proof::kLoss ? Proof::kWin : proof;
}

}  // namespace tengen
