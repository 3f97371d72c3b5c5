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
  for (int size = GoRules::kMinSize; size <= GoRules::kMaxSize; ++size) {
    names.push_back(go_name(make_go_rules(size, size)));
  }
  return names;
}

GameName parse_game_name(const std::string& name) {
  if (name == "tictactoe") return {GameName::Game::kTicTacToe};
  if (name == "connect4") return {GameName::Game::kConnect4};
  for (int size = Gomoku::kMinSize; size <= Gomoku::kMaxSize; ++size) {
    const std::string plain = kGomokuPrefix + std::to_string(size);
    if (name == plain) return {GameName::Game::kGomoku, size};
    if (name == plain + kExactSuffix) return {GameName::Game::kGomokuExact, size};
  }
  if (is_go_name(name)) return {GameName::Game::kGo, 0, parse_go_name(name)};
  if (is_gomoku(name)) {
    throw Error("task (" + name +
                ") must be gomoku/5 to gomoku/19; add /exact if only exactly five may win");
  }
  throw Error(
      "task (" + name +
      ") must be tictactoe, connect4, gomoku/5 to gomoku/19 or go/2 to go/19; check the spelling");
}

}  // namespace tengen
