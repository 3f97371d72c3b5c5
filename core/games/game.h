#pragma once
// The Game concept: perfect information, two players, zero sum. A Game object holds what is fixed
// (size, rules, tables) and is shared read-only between threads; a State is a plain value that is
// copied freely. No method allocates.
//
// Actions are integers 0..num_actions()-1. `first` is player 0, who moves first (in Go always
// Black, even in a handicap game). Planes are float32 [C, H, W], from the side to move's point of
// view; plane 0 is the board mask (1 on the board), so that one net supports several sizes.

#include <concepts>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/hash.h"

namespace tengen {

// How the policy head maps features [C, H, W] to actions.
enum class PolicyLayout : uint8_t {
  kCells = 0,         // num_actions == H * W, action = row * W + column
  kCellsAndPass = 1,  // num_actions == H * W + 1, pass last
  kColumns = 2,       // num_actions == W, action = column
  kFlat = 3,          // anything else: a dense layer
};

enum class Outcome : uint8_t { kOngoing = 0, kFirstWins = 1, kSecondWins = 2, kDraw = 3 };

// Value of a finished game for player 0, in {-1, 0, 1}.
constexpr float value_to_first(Outcome outcome) {
  return outcome == Outcome::kFirstWins ? 1.0f : outcome == Outcome::kSecondWins ? -1.0f : 0.0f;
}

template <class G>
concept Game = requires(const G game, typename G::State state, const typename G::State& view,
                        uint16_t* actions, float* planes, int action, int symmetry) {
  requires std::copyable<typename G::State>;
  { game.name() } -> std::convertible_to<std::string>;  // as in `tengen train NAME`
  { game.num_actions() } -> std::same_as<int>;
  { game.num_planes() } -> std::same_as<int>;
  { game.height() } -> std::same_as<int>;
  { game.width() } -> std::same_as<int>;
  { game.max_plies() } -> std::same_as<int>;  // the maximum length of a game
  { game.policy_layout() } -> std::same_as<PolicyLayout>;
  { game.num_symmetries() } -> std::same_as<int>;  // 1 if there are none; 0 is the identity
  { game.initial_state() } -> std::same_as<typename G::State>;
  { game.to_play(view) } -> std::same_as<int>;  // 0 first, 1 second
  { game.ply(view) } -> std::same_as<int>;      // moves made so far
  { game.outcome(view) } -> std::same_as<Outcome>;
  // Writes the legal actions in increasing order; returns how many (0 only if the game is over).
  { game.legal_actions(view, actions) } -> std::same_as<int>;
  { game.is_legal(view, action) } -> std::same_as<bool>;
  // Precondition: is_legal(state, action). Not checked here.
  { game.apply(state, action) } -> std::same_as<void>;
  { game.key(view) } -> std::same_as<Key128>;  // depends on everything that the planes show
  // Writes all num_planes * height * width floats, with the board transformed by `symmetry`.
  { game.encode(view, symmetry, planes) } -> std::same_as<void>;
  // The image of each action under `symmetry`: num_actions() entries, valid as long as the game.
  { game.images(view, symmetry) } -> std::same_as<const uint16_t*>;
  { game.to_string(view) } -> std::convertible_to<std::string>;
};

// A Game whose positions are made outside the core, most efficiently many at a time: a move may be
// unknown until it is made (games/external/external_game.h).
template <class G>
concept ExternallyPlayed = Game<G> && requires(const G game, const typename G::State& view) {
  { game.is_known(view, 0) } -> std::same_as<bool>;
};

// A Game that ends with a score in points and an owner of each cell, its first actions.
template <class G>
concept HasScore =
    Game<G> && requires(const G game, const typename G::State& view, int8_t* owners) {
      // A number of points that winning margins rarely exceed.
      { game.max_score() } -> std::same_as<int>;
      // The number of cells of the board that this game is played on.
      { game.num_points(view) } -> std::same_as<int>;
      // Whether no play can change the owner of any cell although the game is not over.
      { game.is_settled(view) } -> std::same_as<bool>;
      // The first player's points less the second's, for a game that is over or settled.
      { game.score(view) } -> std::same_as<float>;
      // Writes height * width owners for such a game: 1 the first player, -1 the second, 0 nobody
      // or off the board.
      { game.owners(view, owners) } -> std::same_as<void>;
    };

// A HasScore in which cells get a permanent owner during the game.
template <class G>
concept HasPassAlive =
    HasScore<G> && requires(const G game, const typename G::State& view, uint8_t* cells) {
      // Writes height * width cells: 1 if the cell has a permanent owner, otherwise 0.
      { game.pass_alive_cells(view, cells) } -> std::same_as<void>;
    };

// The number of cells of the board on which the game of a position is played.
template <Game G>
int board_area(const G& game, const typename G::State& view) {
  if constexpr (HasScore<G>) {
    return game.num_points(view);
  } else {
    return game.height() * game.width();
  }
}

// A HasScore whose second player is given points (komi), in half points. A position can be
// evaluated with another komi.
template <class G>
concept HasKomi = HasScore<G> && requires(const G game, typename G::State state,
                                          const typename G::State& view, int half_points) {
  { game.komi_half_points(view) } -> std::same_as<int>;
  // Changes only komi, not board, history or side to move.
  { game.set_komi_half_points(state, half_points) } -> std::same_as<void>;
};

constexpr Outcome outcome_of_score(float score_to_first) {
  return score_to_first > 0.0f   ? Outcome::kFirstWins
         : score_to_first < 0.0f ? Outcome::kSecondWins
                                 : Outcome::kDraw;
}

// A Game with variants: on a smaller board, or with other rules. Variants have the planes and the
// actions of the game; the state knows its variant.
template <class G>
concept HasVariants = Game<G> && requires(const G game, const std::string& variant) {
  // The start of the variant with that name. Throws Error if it does not fit.
  { game.initial_state(variant) } -> std::same_as<typename G::State>;
};

// The start of the named variant, or of the game itself if the name is empty. Throws Error if the
// game has no such variant.
template <Game G>
typename G::State initial_state_of(const G& game, const std::string& variant) {
  if (variant.empty()) return game.initial_state();
  if constexpr (HasVariants<G>) {
    return game.initial_state(variant);
  } else {
    throw Error("variant (" + variant + ") must be empty in " + std::string(game.name()) +
                ", which is played one way; leave it out");
  }
}

}  // namespace tengen
