#include "games/registry/registry.h"

#include <string>

#include "base/error.h"
#include "base/testing.h"

using namespace tengen;

int main() {
  const auto names = known_games();
  TENGEN_CHECK(names.size() == 2 + 15 * 2 + 18);
  for (const std::string& name : names) {
    TENGEN_CHECK(with_game(name, [](const auto& game) { return game.name(); }) == name);
  }
  for (const std::string name :
       {"go/9x13", "go/2x19/nosuicide", "go/9/simple/komi=-0.5/handicap=2/plies=1",
        "go/19/nosuicide/planes=minigo", "go/9/plies=1/planes=minigo",
        "go/9x13/simple/planes=katago"}) {
    TENGEN_CHECK(with_game(name, [](const auto& game) { return game.name(); }) == name);
  }
  for (const std::string name : {"",
                                 "chess",
                                 "gomoku",
                                 "gomoku/",
                                 "gomoku/4",
                                 "gomoku/20",
                                 "gomoku/09",
                                 "gomoku/9/",
                                 "gomoku/9/renju",
                                 "gomoku/9x",
                                 "connect4/7",
                                 "Tictactoe",
                                 "go",
                                 "go/1",
                                 "go/9x20",
                                 "go/9x9",
                                 "go/09",
                                 "go/9/komi=7.5",
                                 "go/9/nosuicide/simple",
                                 "go/9/planes=own",
                                 "go/9/planes=minigo/plies=1",
                                 "go/7/handicap=5"}) {
    std::string message;
    try {
      with_game(name, [](const auto& game) { return game.name(); });
    } catch (const Error& error) {
      message = error.what();
    }
    TENGEN_CHECK(message.find("task (" + name + ") must ") == 0);
    TENGEN_CHECK(message.find("; ") != std::string::npos);
  }
  return 0;
}
