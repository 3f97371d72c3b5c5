#pragma once
// A recorded list of operations on arrays with fixed shapes, for learner steps of small networks.
// It replaces one call of a framework's dispatcher per operation. tengen.learners.recording
// records programs.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tengen::programs {

inline constexpr int kAxes = 4;
inline constexpr int kOperands = 6;
inline constexpr int kConstants = 4;

enum class Type : uint8_t { kBool, kUint8, kInt32, kInt64, kFloat, kDouble };

// An array: its first element is `offset` bytes after the start of the memory `slot`. Strides are
// numbers of bytes; a stride of 0 repeats an element.
struct Operand {
  int slot = 0;
  int64_t offset = 0;
  Type type = Type::kFloat;
  std::array<int64_t, kAxes> strides = {};
};

// One operation. The first operand is written, unless the operation says otherwise.
struct Operation {
  using Run = void (*)(const Operation& operation, char* const* data);

  Run run = nullptr;
  const void* function = nullptr;  // of the kernels, for maps
  bool is_double = false;          // whether a map computes in double
  int num_operands = 0;
  std::array<int64_t, kAxes> sizes = {1, 1, 1, 1};
  std::array<Operand, kOperands> operands = {};
  std::array<double, kConstants> constants = {};
};

class Program {
 public:
  // Appends an operation. Axes are aligned at the last one. `kind` is one of:
  // - the name of a map (kernels_impl.h): out, then the inputs.
  // - "accumulate", "accumulate_squares": out, x. Adds x to floats, whose stride is 0 on summed
  //   axes. If the last axis of x is not summed, it must be contiguous in out.
  // - "multiply": out [M, N], a [M, K], b [K, N], and optionally bias [N]; sizes are M, N, K.
  // - "largest", "smallest": values, indices, x; the last axis of x is reduced.
  // - "gather": out, x, one or two indices. Element i of out is the element of x at i plus stride
  //   times index; constants are stride and size of each indexed axis.
  // - "scatter", "scatter_add": out, x, indices; the reverse, which writes out.
  // - "adamw": parameter, gradient, both moments, step, learning rate; constants are beta1, beta2,
  //   epsilon and weight decay. Contiguous.
  // Throws Error if `kind` or a number of elements is invalid.
  void add(const std::string& kind, const std::vector<int64_t>& sizes,
           const std::vector<Operand>& operands, const std::vector<double>& constants);

  // Runs all operations. `addresses` has the start of each slot's memory, which must be
  // large enough for the operands. Throws Error if an index is out of range.
  void run(std::span<const uint64_t> addresses) const;

 private:
  std::vector<Operation> operations_;
};

}  // namespace tengen::programs
