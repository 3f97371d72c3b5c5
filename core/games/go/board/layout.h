#pragma once
// Places a board in the upper left corner of a game's planes (the frame), which may be larger.
// Points are indices on the board (row * width + column) and actions are indices in the frame; in
// both, the last index is the pass.

#include <array>
#include <memory>
#include <mutex>

#include "games/go/board/board.h"
#include "games/symmetry.h"

namespace tengen {

// The mapping between the points of a board and the actions. Immutable.
class GoLayout {
 public:
  static constexpr uint16_t kOffBoard = 0xffff;

  // Precondition: the board fits the frame.
  GoLayout(int height, int width, int frame_height, int frame_width);

  const GoBoard& board() const { return board_; }
  int height() const { return height_; }
  int width() const { return width_; }
  bool fills_frame() const { return fills_frame_; }
  // Returns the point of an action; kOffBoard if the action is not a point of the board.
  uint16_t point_of(int action) const { return points_[static_cast<size_t>(action)]; }
  uint16_t action_of(int point) const { return actions_[static_cast<size_t>(point)]; }
  // The image of each action under `symmetry`; actions off the board map to themselves.
  const uint16_t* images(int symmetry) const {
    return images_[static_cast<size_t>(symmetry)].data();
  }

 private:
  using Table = std::array<uint16_t, kGoMaxPoints + 1>;

  int height_, width_;
  bool fills_frame_;
  GoBoard board_;
  Table points_{};   // points indexed by action
  Table actions_{};  // actions indexed by point
  std::array<Table, kNumSquareSymmetries> images_{};
};

// The layouts of all boards that fit one frame, created on first use. Thread-safe.
class GoLayouts {
 public:
  GoLayouts(int frame_height, int frame_width)
      : frame_height_(frame_height), frame_width_(frame_width) {}

  // Precondition: the board fits the frame. The layout is valid for the lifetime of this object.
  const GoLayout& get(int height, int width);

 private:
  int frame_height_, frame_width_;
  std::mutex mutex_;
  std::array<std::array<std::unique_ptr<const GoLayout>, kGoMaxSize + 1>, kGoMaxSize + 1> made_;
};

}  // namespace tengen
