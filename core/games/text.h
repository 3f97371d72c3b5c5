#pragma once
// Formats boards as human-readable text.

#include <string>

#include "games/game.h"

namespace tengen {

// Returns 'X' for the first player, 'O' for the second, '.' for an empty cell.
constexpr char stone_text(bool first, bool second) { return first ? 'X' : second ? 'O' : '.'; }

// The letters of the columns, except in Go, which skips I.
inline constexpr const char* kColumns = "abcdefghijklmnopqrs";
inline constexpr const char* kGoColumns = "ABCDEFGHJKLMNOPQRST";

// Draws a board with letters for columns and numbers for rows from the bottom up, as in diagrams of
// Go and gomoku. `cells` contains the rows from the top, `width` characters per row.
std::string board_text(const std::string& cells, int width, const char* columns);

// Returns "X to play", "O to play", "X wins", "O wins" or "draw".
std::string status_text(int to_play, Outcome outcome);

}  // namespace tengen
