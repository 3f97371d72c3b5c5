#pragma once
// What self-play remembers of a ply until its game ends, beside the record.

namespace tengen {

struct PlyNote {
  float value_to_first = 0.0f;          // of the search, in [-1, 1]
  float network_value_to_first = 0.0f;  // before it
  float policy_surprise = 0.0f;  // KL of the policy target from the prior searched with, nats
};

}  // namespace tengen
