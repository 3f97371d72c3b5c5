#include "store/steps/packed_steps.h"

#include <cstring>
#include <string>

#include "base/error.h"

namespace tengen::store::engine {

SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first,
                      uint32_t count) {
  SavedSteps steps{first, count, {}};
  schema.for_each_run(chunk, first, count, [&](const std::byte* from, uint64_t num_bytes) {
    steps.bytes.insert(steps.bytes.end(), from, from + num_bytes);
  });
  return steps;
}

void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk) {
  if (uint64_t{steps.first} + steps.count > schema.steps_per_chunk() ||
      steps.bytes.size() != steps.count * schema.step_bytes()) {
    throw Error("steps (" + std::to_string(steps.first) + " to " +
                std::to_string(uint64_t{steps.first} + steps.count) +
                ") must be of a chunk of the table; the log is damaged, remove the store's folder");
  }
  const std::byte* from = steps.bytes.data();
  schema.for_each_run(chunk, steps.first, steps.count, [&](std::byte* to, uint64_t num_bytes) {
    std::memcpy(to, from, num_bytes);
    from += num_bytes;
  });
}

}  // namespace tengen::store::engine
