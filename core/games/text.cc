#include "games/text.h"

namespace tengen {

std::string board_text(const std::string& cells, int width, const char* columns) {
  const int height = static_cast<int>(cells.size()) / width;
  const int label_width = height >= 10 ? 2 : 1;
  const auto padded = [&](const std::string& label) {
    return std::string(static_cast<size_t>(label_width) - label.size(), ' ') + label;
  };
  std::string text;
  for (int row = 0; row < height; ++row) {
    text += padded(std::to_string(height - row));
    for (int column = 0; column < width; ++column) {
      text += ' ';
      text += cells[static_cast<size_t>(row * width + column)];
    }
    text += '\n';
  }
  text += padded("");
  for (int column = 0; column < width; ++column) {
    text += ' ';
    text += columns[column];
  }
  return text + '\n';
}

std::string status_text(int to_play, Outcome outcome) {
  switch (outcome) {
    case Outcome::kFirstWins:
      return "X wins";
    case Outcome::kSecondWins:
      return "O wins";
    case Outcome::kDraw:
      return "draw";
    case Outcome::kOngoing:
      break;
  }
  return to_play == 0 ? "X to play" : "O to play";
}

}  // namespace tengen
