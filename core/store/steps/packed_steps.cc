#include "store/steps/packed_steps.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "store/steps/gather.h"

namespace tengen::store::engine {

SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first,
                      uint32_t count) {
  SavedSteps steps{first, count, {}};
  const auto add = [&](uint64_t offset, uint64_t num_bytes) {
    const std::byte* from = chunk + offset + first * num_bytes;
    steps.bytes.insert(steps.bytes.end(), from, from + count * num_bytes);
  };
  for (size_t c = 0; c < schema.columns().size(); ++c) {
    add(schema.offset(c), schema.columns()[c].num_bytes);
  }
  if (schema.num_context() > 0) add(schema.ages_offset(), 1);
  return steps;
}

void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk) {
  const uint64_t step_bytes = schema.step_bytes() + (schema.num_context() > 0 ? 1 : 0);
  if (uint64_t{steps.first} + steps.count > schema.steps_per_chunk() ||
      steps.bytes.size() != steps.count * step_bytes) {
    throw Error("steps (" + std::to_string(steps.first) + " to " +
                std::to_string(uint64_t{steps.first} + steps.count) +
                ") must be of a chunk of the table; the log is damaged, remove the store's folder");
  }
  std::vector<const std::byte*> columns;
  const std::byte* from = steps.bytes.data();
  for (const Column& column : schema.columns()) {
    columns.push_back(from);
    from += steps.count * column.num_bytes;
  }
  scatter(schema, columns, reinterpret_cast<const uint8_t*>(from), steps.count, chunk, steps.first);
}

}  // namespace tengen::store::engine
