#include "games/registry/registry.h"

#include "base/error.h"

namespace tengen {
namespace {

const std::string kGomokuPrefix = "gomoku/";
const std::string kExactSuffix = "/exact";

template <class... Rows>
std::vector<std::string> names_of(GameList<Rows...>) {
  std::vector<std::string> names;
  for (const auto& row : {Rows::names()...}) names.insert(names.end(), row.begin(), row.end());
  return names;
}

// Returns the forms of all rows as "a, b or c".
template <class... Rows>
std::string forms_of(GameList<Rows...>) {
  std::string text;
  size_t rest = sizeof...(Rows);
  for (const std::string& forms : {Rows::forms()...}) {
    text += forms;
    --rest;
    text += rest > 1 ? ", " : rest == 1 ? " or " : "";
  }
  return text;
}

}  // namespace

std::string GomokuNames::forms() {
  return kGomokuPrefix + std::to_string(Gomoku::kMinSize) + " to " + kGomokuPrefix +
         std::to_string(Gomoku::kMaxSize);
}

std::vector<std::string> GomokuNames::names() {
  std::vector<std::string> names;
  for (int size = Gomoku::kMinSize; size <= Gomoku::kMaxSize; ++size) {
    names.push_back(kGomokuPrefix + std::to_string(size));
    names.push_back(names.back() + kExactSuffix);
  }
  return names;
}

std::optional<Gomoku> GomokuNames::make(const std::string& name) {
  for (int size = Gomoku::kMinSize; size <= Gomoku::kMaxSize; ++size) {
    const std::string plain = kGomokuPrefix + std::to_string(size);
    if (name == plain) return Gomoku(size);
    if (name == plain + kExactSuffix) return Gomoku(size, true);
  }
  if (name == "gomoku" || name.compare(0, kGomokuPrefix.size(), kGomokuPrefix) == 0) {
    throw Error("task (" + name + ") must be " + forms() +
                "; add /exact if only exactly five may win");
  }
  return std::nullopt;
}

std::string GoNames::forms() {
  return "go/" + std::to_string(GoRules::kMinSize) + " to go/" + std::to_string(GoRules::kMaxSize);
}

std::vector<std::string> GoNames::names() {
  std::vector<std::string> names;
  for (int size = GoRules::kMinSize; size <= GoRules::kMaxSize; ++size) {
    names.push_back(go_name(make_go_rules(size, size)));
  }
  return names;
}

std::optional<Go> GoNames::make(const std::string& name) {
  if (!is_go_name(name)) return std::nullopt;
  return Go(parse_go_name(name));
}

std::vector<std::string> known_games() { return names_of(NativeGames()); }

void refuse_game_name(const std::string& name) {
  throw Error("task (" + name + ") must be " + forms_of(NativeGames()) + "; check the spelling");
}

}  // namespace tengen
