#pragma once
// A network for games about rows of stones, evaluated by table lookup.
//
// A small network maps the pattern of each line through a cell (core/lines/line_patterns.h) to
// features. There are few patterns, so it is evaluated once for each when the model is loaded. A
// cell's features are the sum of its four lines, then a ReLU. The mean and the maximum of all cells
// give a context, which yields the value, and the weights of the policy's dot products.
//
// Source: the idea of tabulated line patterns is that of Rapfi (Jin et al. 2025, arXiv 2503.13178).
// Differs from Rapfi: no convolution mixes neighbouring cells, a position is evaluated from scratch
// and not updated by each move, and the policy's weights depend on the whole board.
//
// Numbers are added in a fixed order, so outputs are bitwise equal for all batches and instruction
// sets.

#include <span>
#include <vector>

#include "lines/line_patterns.h"

namespace tengen {

// A dense layer: weights [num_outputs, num_inputs] and biases [num_outputs].
struct DenseWeights {
  int num_inputs;
  int num_outputs;
  std::span<const float> weights;
  std::span<const float> bias;
};

struct LinesWeights {
  int reach;
  // Three layers of a line, whose inputs are those of LinePatterns.
  DenseWeights line[3];
  DenseWeights context;   // means, maxima, and the means of all planes after plane 2
  DenseWeights policy;    // from the context to the weights of the features
  DenseWeights value[2];  // from the context to win, draw and loss
};

class LinesNet {
 public:
  static constexpr int kMaxFeatures = 512;

  // Throws Error if sizes do not match, or weights are not finite.
  explicit LinesNet(const LinesWeights& weights);

  // Evaluates `num_rows` positions. Writes policy logits [num_rows, height * width] and values
  // [num_rows], the probability of a win minus that of a loss for the side to move. Thread-safe.
  // Throws Error if the board has other planes than the network or is larger than
  // LinePatterns::kMaxSide.
  void evaluate(const LinesBoard& board, const float* planes, int num_rows, float* policy,
                float* value) const;

 private:
  // A layer whose weights are transposed and padded for the kernels.
  class Dense {
   public:
    explicit Dense(const DenseWeights& weights);
    int num_inputs() const { return num_inputs_; }
    int num_outputs() const { return num_outputs_; }
    // The size of `out`, which run() writes completely.
    int padded() const { return static_cast<int>(bias_.size()); }
    void run(const float* x, bool has_relu, float* out) const;

   private:
    int num_inputs_;
    int num_outputs_;
    std::vector<float> weights_;
    std::vector<float> bias_;
  };

  LinePatterns patterns_;
  int width_;                 // number of features
  std::vector<float> table_;  // features of each pattern
  Dense context_;
  Dense policy_;
  Dense value1_;
  Dense value2_;
};

}  // namespace tengen
