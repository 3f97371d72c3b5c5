#include "games/go/board/layout.h"

#include <numeric>

namespace tengen {

GoLayout::GoLayout(int height, int width, int frame_height, int frame_width)
    : height_(height),
      width_(width),
      fills_frame_(height == frame_height && width == frame_width),
      board_(height, width) {
  const int pass = frame_height * frame_width;
  points_.fill(kOffBoard);
  points_[static_cast<size_t>(pass)] = static_cast<uint16_t>(height * width);
  actions_[static_cast<size_t>(height * width)] = static_cast<uint16_t>(pass);
  for (auto& image : images_) std::iota(image.begin(), image.end(), uint16_t{0});
  const int num_symmetries = num_board_symmetries(frame_height, frame_width);
  for (int point = 0; point < height * width; ++point) {
    const int row = point / width;
    const int column = point % width;
    const auto action = static_cast<size_t>(row * frame_width + column);
    points_[action] = static_cast<uint16_t>(point);
    actions_[static_cast<size_t>(point)] = static_cast<uint16_t>(action);
    for (int symmetry = 0; symmetry < num_symmetries; ++symmetry) {
      images_[static_cast<size_t>(symmetry)][action] = static_cast<uint16_t>(
          transform_in_frame(row, column, height, width, frame_width, symmetry));
    }
  }
}

const GoLayout& GoLayouts::get(int height, int width) {
  const std::scoped_lock lock(mutex_);
  auto& made = made_[static_cast<size_t>(height)][static_cast<size_t>(width)];
  if (made == nullptr) {
    made = std::make_unique<const GoLayout>(height, width, frame_height_, frame_width_);
  }
  return *made;
}

}  // namespace tengen
