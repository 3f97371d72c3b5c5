#include "programs/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "programs/kernels.h"

namespace tengen::programs {
namespace {

constexpr int kLast = kAxes - 1;
// Number of elements of an operand that are converted or repeated at a time.
constexpr int kBatch = 512;

size_t size_of(Type type) {
  constexpr size_t kSizes[] = {1, 1, 4, 8, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

// Calls `f` with a null pointer to the C++ type of `type`.
template <class F>
decltype(auto) with_type(Type type, F&& f) {
  switch (type) {
    case Type::kBool:
    case Type::kUint8:
      return f(static_cast<uint8_t*>(nullptr));
    case Type::kInt32:
      return f(static_cast<int32_t*>(nullptr));
    case Type::kInt64:
      return f(static_cast<int64_t*>(nullptr));
    case Type::kFloat:
      return f(static_cast<float*>(nullptr));
    case Type::kDouble:
      break;
  }
  return f(static_cast<double*>(nullptr));
}

template <class To>
To read(Type type, const char* p) {
  return with_type(type, [p](auto* null) {
    std::remove_reference_t<decltype(*null)> value;
    std::memcpy(&value, p, sizeof value);
    return static_cast<To>(value);
  });
}

template <class From>
void write(Type type, char* p, From x) {
  if (type == Type::kBool) x = static_cast<From>(x != From(0));
  with_type(type, [p, x](auto* null) {
    const auto value = static_cast<std::remove_reference_t<decltype(*null)>>(x);
    std::memcpy(p, &value, sizeof value);
  });
}

// Calls f(pointers) for each index of all axes but the last.
template <class F>
void each_row(const Operation& operation, char* const* data, F&& f) {
  const auto& n = operation.sizes;
  char* p[kOperands];
  for (int64_t i = 0; i < n[0]; ++i) {
    for (int64_t j = 0; j < n[1]; ++j) {
      for (int64_t k = 0; k < n[2]; ++k) {
        for (int o = 0; o < operation.num_operands; ++o) {
          const auto& s = operation.operands[static_cast<size_t>(o)].strides;
          p[o] = data[o] + i * s[0] + j * s[1] + k * s[2];
        }
        f(p);
      }
    }
  }
}

constexpr Type type_of(const float*) { return Type::kFloat; }
constexpr Type type_of(const double*) { return Type::kDouble; }

// Whether the elements of the last axis are adjacent values of type T.
template <class T>
bool is_plain(const Operand& operand) {
  return operand.type == type_of(static_cast<T*>(nullptr)) && operand.strides[kLast] == sizeof(T);
}

// Returns `count` elements as T, in place or converted into `buffer`.
template <class T>
const T* fetch(const Operand& operand, const char* p, int count, T* buffer) {
  if (is_plain<T>(operand)) return reinterpret_cast<const T*>(p);
  const int64_t stride = operand.strides[kLast];
  if (stride == 0) {
    std::fill(buffer, buffer + count, read<T>(operand.type, p));
    return buffer;
  }
  with_type(operand.type, [&](auto* null) {
    for (int i = 0; i < count; ++i) {
      std::remove_reference_t<decltype(*null)> value;
      std::memcpy(&value, p + i * stride, sizeof value);
      buffer[i] = static_cast<T>(value);
    }
  });
  return buffer;
}

template <class T>
void run_map(const Operation& operation, char* const* data) {
  const auto function = reinterpret_cast<Map<T>>(const_cast<void*>(operation.function));
  const Operand& out = operation.operands[0];
  T buffers[4][kBatch];
  each_row(operation, data, [&](char* const* p) {
    for (int64_t first = 0; first < operation.sizes[kLast]; first += kBatch) {
      const int count = static_cast<int>(std::min<int64_t>(kBatch, operation.sizes[kLast] - first));
      const T* inputs[3] = {};
      for (int o = 1; o < operation.num_operands; ++o) {
        const Operand& operand = operation.operands[static_cast<size_t>(o)];
        inputs[o - 1] = fetch(operand, p[o] + first * operand.strides[kLast], count, buffers[o]);
      }
      char* const to = p[0] + first * out.strides[kLast];
      T* const result = is_plain<T>(out) ? reinterpret_cast<T*>(to) : buffers[0];
      function(inputs[0], inputs[1], inputs[2], operation.constants.data(), result, count);
      if (is_plain<T>(out)) continue;
      for (int i = 0; i < count; ++i) write(out.type, to + i * out.strides[kLast], result[i]);
    }
  });
}

float* floats(char* p) { return reinterpret_cast<float*>(p); }

template <bool kSquares>
void run_accumulate(const Operation& operation, char* const* data) {
  const Kernels& set = kernels();
  const Operand& x = operation.operands[1];
  const bool is_summed = operation.operands[0].strides[kLast] == 0;
  each_row(operation, data, [&](char* const* p) {
    float buffer[kBatch];
    float* out = floats(p[0]);
    for (int64_t first = 0; first < operation.sizes[kLast]; first += kBatch) {
      const int count = static_cast<int>(std::min<int64_t>(kBatch, operation.sizes[kLast] - first));
      const float* values = fetch(x, p[1] + first * x.strides[kLast], count, buffer);
      if (is_summed)
        *out += (kSquares ? set.sum_squares : set.sum)(values, count);
      else if (!kSquares)
        set.add(values, out + first, count);
      else
        for (int i = 0; i < count; ++i) out[first + i] += values[i] * values[i];
    }
  });
}

void run_multiply(const Operation& operation, char* const* data) {
  const auto stride = [&](size_t operand, int axis) {
    return operation.operands[operand].strides[static_cast<size_t>(axis)] /
           static_cast<int64_t>(sizeof(float));
  };
  const bool has_bias = operation.num_operands > 3;
  const Product product = {.num_rows = operation.sizes[kLast - 2],
                           .num_columns = operation.sizes[kLast - 1],
                           .depth = operation.sizes[kLast],
                           .a = floats(data[1]),
                           .a_row = stride(1, kLast - 1),
                           .a_depth = stride(1, kLast),
                           .b = floats(data[2]),
                           .b_depth = stride(2, kLast - 1),
                           .b_column = stride(2, kLast),
                           .bias = has_bias ? floats(data[3]) : nullptr,
                           .bias_column = has_bias ? stride(3, kLast) : 0,
                           .out = floats(data[0]),
                           .out_row = stride(0, kLast - 1)};
  thread_local std::vector<float> scratch;
  const size_t needed = static_cast<size_t>(kernels().scratch_floats(product));
  if (scratch.size() < needed) scratch.resize(needed);
  kernels().multiply(product, scratch.data());
}

// The first NaN counts as both the largest and the smallest element, as in torch.
template <bool kLargest>
void run_extreme(const Operation& operation, char* const* data) {
  const auto& [values, indices, x] =
      std::tie(operation.operands[0], operation.operands[1], operation.operands[2]);
  each_row(operation, data, [&](char* const* p) {
    double best = read<double>(x.type, p[2]);
    int64_t place = 0;
    for (int64_t i = 1; i < operation.sizes[kLast] && !std::isnan(best); ++i) {
      const double value = read<double>(x.type, p[2] + i * x.strides[kLast]);
      if (!(kLargest ? value > best : value < best) && !std::isnan(value)) continue;
      best = value;
      place = i;
    }
    write(values.type, p[0], best);
    write(indices.type, p[1], place);
  });
}

enum class Indexing { kGather, kScatter, kScatterAdd };

template <Indexing kHow>
void run_indexed(const Operation& operation, char* const* data) {
  const Operand &out = operation.operands[0], &x = operation.operands[1];
  each_row(operation, data, [&](char* const* p) {
    for (int64_t i = 0; i < operation.sizes[kLast]; ++i) {
      int64_t moved = 0;
      for (int o = 2; o < operation.num_operands; ++o) {
        const Operand& index = operation.operands[static_cast<size_t>(o)];
        const double* const axis = &operation.constants[static_cast<size_t>(o - 2) * 2];
        const int64_t size = static_cast<int64_t>(axis[1]);
        int64_t place = read<int64_t>(index.type, p[o] + i * index.strides[kLast]);
        if (place < 0) place += size;
        if (place < 0 || place >= size)
          throw Error("index (" + std::to_string(place) + ") must be below " +
                      std::to_string(size) + "; check the actions of the experience");
        moved += place * static_cast<int64_t>(axis[0]);
      }
      char* const to = p[0] + i * out.strides[kLast] + (kHow == Indexing::kGather ? 0 : moved);
      const double value = read<double>(
          x.type, p[1] + i * x.strides[kLast] + (kHow == Indexing::kGather ? moved : 0));
      const double before = kHow == Indexing::kScatterAdd ? read<double>(out.type, to) : 0.0;
      write(out.type, to, before + value);
    }
  });
}

void run_adamw(const Operation& operation, char* const* data) {
  const auto [beta1, beta2, epsilon, weight_decay] = operation.constants;
  const double num_steps = read<double>(operation.operands[4].type, data[4]);
  const double rate = read<double>(operation.operands[5].type, data[5]);
  const AdamW step = {.decay = static_cast<float>(1.0 - rate * weight_decay),
                      .rate = static_cast<float>(rate / (1.0 - std::pow(beta1, num_steps))),
                      .beta1 = static_cast<float>(beta1),
                      .beta2 = static_cast<float>(beta2),
                      .scale = static_cast<float>(std::sqrt(1.0 - std::pow(beta2, num_steps))),
                      .epsilon = static_cast<float>(epsilon)};
  kernels().adamw(step, floats(data[1]), floats(data[0]), floats(data[2]), floats(data[3]),
                  operation.sizes[kLast]);
}

constexpr std::pair<const char*, Operation::Run> kKinds[] = {
    {"accumulate", &run_accumulate<false>},
    {"accumulate_squares", &run_accumulate<true>},
    {"multiply", &run_multiply},
    {"largest", &run_extreme<true>},
    {"smallest", &run_extreme<false>},
    {"gather", &run_indexed<Indexing::kGather>},
    {"scatter", &run_indexed<Indexing::kScatter>},
    {"scatter_add", &run_indexed<Indexing::kScatterAdd>},
    {"adamw", &run_adamw},
};

// Sorts the axes by the strides of an operand, largest first, and joins adjacent axes where the
// strides of all operands allow it. Long contiguous rows are faster.
void join_axes(Operation& operation, size_t by) {
  struct Axis {
    int64_t size;
    std::array<int64_t, kOperands> strides;
  };
  std::vector<Axis> axes;
  const auto count = static_cast<size_t>(operation.num_operands);
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (operation.sizes[axis] == 1) continue;
    Axis one = {operation.sizes[axis], {}};
    for (size_t o = 0; o < count; ++o) one.strides[o] = operation.operands[o].strides[axis];
    axes.push_back(one);
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [by](const Axis& a, const Axis& b) { return a.strides[by] > b.strides[by]; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    bool is_adjacent = !joined.empty();
    for (size_t o = 0; is_adjacent && o < count; ++o)
      is_adjacent = joined.back().strides[o] == axis.strides[o] * axis.size;
    if (is_adjacent)
      joined.back() = {joined.back().size * axis.size, axis.strides};
    else
      joined.push_back(axis);
  }
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const size_t unused = kAxes - joined.size();
    const bool is_used = axis >= unused;
    operation.sizes[axis] = is_used ? joined[axis - unused].size : 1;
    for (size_t o = 0; o < count; ++o)
      operation.operands[o].strides[axis] = is_used ? joined[axis - unused].strides[o] : 0;
  }
  // An operand with one element in the last axis is read and written in place.
  for (size_t o = 0; o < count && joined.empty(); ++o)
    operation.operands[o].strides[kLast] =
        static_cast<int64_t>(size_of(operation.operands[o].type));
}

}  // namespace

void Program::add(const std::string& kind, const std::vector<int64_t>& sizes,
                  const std::vector<Operand>& operands, const std::vector<double>& constants) {
  if (sizes.size() > kAxes || operands.size() > kOperands || constants.size() > kConstants)
    throw Error("operation (" + kind + ") must have at most 4 axes, 6 operands and 4 constants");
  Operation operation;
  operation.num_operands = static_cast<int>(operands.size());
  std::copy(sizes.begin(), sizes.end(), operation.sizes.end() - static_cast<int>(sizes.size()));
  std::copy(operands.begin(), operands.end(), operation.operands.begin());
  std::copy(constants.begin(), constants.end(), operation.constants.begin());
  for (const auto& [name, run] : kKinds)
    if (kind == name) operation.run = run;
  if (!operation.run) {
    // Floats and small integers are exact in float; other types need double.
    for (const Operand& operand : operands)
      operation.is_double |= operand.type == Type::kInt32 || operand.type == Type::kInt64 ||
                             operand.type == Type::kDouble;
    operation.run = operation.is_double ? &run_map<double> : &run_map<float>;
    operation.function = operation.is_double
                             ? reinterpret_cast<const void*>(kernels().map_double(kind.c_str()))
                             : reinterpret_cast<const void*>(kernels().map(kind.c_str()));
    if (!operation.function) throw Error("operation (" + kind + ") must be a known one");
    join_axes(operation, 0);
  } else if (kind.starts_with("accumulate")) {
    join_axes(operation, 1);
    const int64_t stride = operation.operands[0].strides[kLast];
    if (operands[0].type != Type::kFloat || (stride != 0 && stride != sizeof(float)))
      throw Error("operation (" + kind + ") must write floats that are summed or contiguous");
  }
  operations_.push_back(operation);
}

void Program::run(std::span<const uint64_t> addresses) const {
  for (const Operation& operation : operations_) {
    char* data[kOperands];
    for (size_t o = 0; o < static_cast<size_t>(operation.num_operands); ++o) {
      const Operand& operand = operation.operands[o];
      const uint64_t start = addresses[static_cast<size_t>(operand.slot)];
      data[o] = reinterpret_cast<char*>(start) + operand.offset;
    }
    operation.run(operation, data);
  }
}

}  // namespace tengen::programs
