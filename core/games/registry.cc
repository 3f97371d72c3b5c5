#include "games/registry.h"

#include "base/error.h"

namespace tengen {
namespace {

const std::string kGomokuPrefix = "gomoku/";
const std::string kExactSuffix = "/exact";

bool is_gomoku(const std::string& name) {
  return name == "gomoku" || name.compare(0, kGomokuPrefix.size(), kGomokuPrefix) == 0;
}

}  // namespace

std::vector<std::string> known_games() {
  std::vector<std::string> names = {"tictactoe", "connect4"};
  for (int size = Gomoku::kMinSize; size <= Gomoku::kMaxSize; ++size) {
    names.push_back(kGomokuPrefix + std::to_string(size));
    names.push_back(names.back() + kExactSuffix);
  }
  return names;
}

GameName parse_game_name(const std::string& name) {
  if (name == "tictactoe") return {GameName::Rules::kTicTacToe, 0};
  if (name == "connect4") return {GameName::Rules::kConnect4, 0};
  for (int size = Gomoku::kMinSize; size <= Gomoku::kMaxSize; ++size) {
    const std::string plain = kGomokuPrefix + std::to_string(size);
    if (name == plain) return {GameName::Rules::kGomoku, size};
    if (name == plain + kExactSuffix) return {GameName::Rules::kGomokuExact, size};
  }
  if (is_gomoku(name)) {
    throw Error("task (" + name +
                ") must be gomoku/5 to gomoku/19; add /exact if only exactly five may win");
  }
  throw Error("task (" + name +
              ") must be tictactoe, connect4 or gomoku/5 to gomoku/19; check the spelling");
}

}  // namespace tengen
