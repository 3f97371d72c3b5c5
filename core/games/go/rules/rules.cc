#include "games/go/rules/rules.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "games/go/rules/handicap.h"
#include "games/go/rules/history.h"

namespace tengen {
namespace {

constexpr std::string_view kPrefix = "go/";
constexpr std::string_view kMinigoPart = "/planes=minigo";
constexpr std::string_view kKatagoPart = "/planes=katago";
constexpr int kMaxKomi = 19 * 19;
constexpr const char* kForm =
    "go/9 or go/9x13 with sizes 2 to 19, then any of these, in this order: /situational or "
    "/simple, "
    "/nosuicide, /komi=6.5, /handicap=2, /plies=500, /planes=minigo or /planes=katago";

bool is_size(int side) { return side >= GoRules::kMinSize && side <= GoRules::kMaxSize; }

// Removes `word` from the front of `text`; returns false if `text` does not start with `word`.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Removes a number of up to four digits, without leading zeros, from the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  size_t length = 0;
  int number = 0;
  while (length < text.size() && length < 5 && text[length] >= '0' && text[length] <= '9') {
    number = 10 * number + (text[length++] - '0');
  }
  if (length == 0 || length == 5 || (length > 1 && text[0] == '0')) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

std::optional<int> take_half_points(std::string_view& text) {
  const bool is_negative = take(text, "-");
  const std::optional<int> whole = take_number(text);
  if (!whole) return std::nullopt;
  const int half_points = 2 * *whole + take(text, ".5");
  return is_negative ? -half_points : half_points;
}

// Parses a name into rules, even if the name is not in the canonical form of go_name().
std::optional<GoRules> read(std::string_view text) {
  if (!take(text, kPrefix)) return std::nullopt;
  const std::optional<int> height = take_number(text);
  if (!height) return std::nullopt;
  const std::optional<int> width = take(text, "x") ? take_number(text) : height;
  if (!width || !is_size(*height) || !is_size(*width)) return std::nullopt;
  GoRules rules = make_go_rules(*height, *width);
  if (take(text, "/situational")) {
    rules.ko = GoKo::kSituational;
  } else if (take(text, "/simple")) {
    rules.ko = GoKo::kSimple;
  }
  rules.may_suicide = !take(text, "/nosuicide");
  if (take(text, "/komi=")) rules.komi_half_points = take_half_points(text).value_or(1 << 20);
  if (take(text, "/handicap=")) rules.handicap = take_number(text).value_or(-1);
  if (take(text, "/plies=")) rules.max_plies = take_number(text).value_or(-1);
  if (take(text, kMinigoPart)) {
    rules.planes = GoPlanes::kMinigo;
  } else if (take(text, kKatagoPart)) {
    rules.planes = GoPlanes::kKatago;
  }
  if (!text.empty()) return std::nullopt;
  return rules;
}

std::string half_points_text(int half_points) {
  std::string text = half_points < 0 ? "-" : "";
  text += std::to_string(std::abs(half_points) / 2);
  if (half_points % 2 != 0) text += ".5";
  return text;
}

}  // namespace

GoRules make_go_rules(int height, int width) {
  GoRules rules;
  rules.height = height;
  rules.width = width;
  rules.max_plies = 2 * height * width;
  return rules;
}

GoRules parse_go_name(const std::string& name) {
  const std::optional<GoRules> rules = read(name);
  if (!rules) throw Error("task (" + name + ") must be " + kForm + "; correct it");
  const int most_stones = max_handicap(rules->height, rules->width);
  const auto must = [&](bool holds, const std::string& rule) {
    if (!holds) throw Error("task (" + name + ") must " + rule + "; correct it");
  };
  must(std::abs(rules->komi_half_points) <= 2 * kMaxKomi,
       "have a komi of whole or half points up to " + std::to_string(kMaxKomi));
  must(rules->handicap == 0 || (rules->handicap >= 2 && rules->handicap <= most_stones),
       most_stones == 0 ? "have no handicap, for which this board is too small"
                        : "have a handicap of 2 to " + std::to_string(most_stones));
  must(rules->max_plies >= 1 && rules->max_plies < KeyHistory::kMaxKeys,
       "have 1 to " + std::to_string(KeyHistory::kMaxKeys - 1) + " plies");
  must(go_name(*rules) == name, "be written " + go_name(*rules));
  return *rules;
}

std::string go_name(const GoRules& rules) {
  const GoRules usual = make_go_rules(rules.height, rules.width);
  std::string name = std::string(kPrefix) + std::to_string(rules.height);
  if (rules.width != rules.height) name += 'x' + std::to_string(rules.width);
  if (rules.ko == GoKo::kSituational) name += "/situational";
  if (rules.ko == GoKo::kSimple) name += "/simple";
  if (!rules.may_suicide) name += "/nosuicide";
  if (rules.komi_half_points != usual.komi_half_points) {
    name += "/komi=" + half_points_text(rules.komi_half_points);
  }
  if (rules.handicap != 0) name += "/handicap=" + std::to_string(rules.handicap);
  if (rules.max_plies != usual.max_plies) name += "/plies=" + std::to_string(rules.max_plies);
  if (rules.planes == GoPlanes::kMinigo) name += kMinigoPart;
  if (rules.planes == GoPlanes::kKatago) name += kKatagoPart;
  return name;
}

bool is_go_name(const std::string& name) { return name == "go" || name.starts_with(kPrefix); }

}  // namespace tengen
