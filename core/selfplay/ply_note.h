#pragma once
// Data of a ply that self-play holds until the game ends, in addition to the ply's record.

namespace tengen {

struct PlyNote {
  float value_to_first = 0.0f;          // the search's value, in [-1, 1]
  float network_value_to_first = 0.0f;  // the network's value before the search
  float policy_surprise =
      0.0f;  // KL divergence of the policy target from the prior used in the search, nats
};

}  // namespace tengen
