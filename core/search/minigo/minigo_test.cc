// The search of the MLPerf benchmark minigo, compared with values worked out by hand.

#include <cmath>
#include <functional>
#include <vector>

#include "base/testing.h"
#include "games/go/testing.h"
#include "games/tictactoe/tictactoe.h"
#include "search/minigo/minigo_search.h"
#include "search/testing.h"

using namespace tengen;

namespace {

// Returns a position's value to play; its policy is in `logits`.
using Value = std::function<float(const TicTacToe::State&)>;

SearchSettings settings_of(int virtual_losses) {
  SearchSettings settings;
  settings.policy = RootPolicy::kMinigo;
  settings.minigo_virtual_losses = virtual_losses;
  return settings;
}

TicTacToe::State after(const TicTacToe& game, const std::vector<int>& moves) {
  auto state = game.initial_state();
  for (const int move : moves) game.apply(state, move);
  return state;
}

template <Game G, class Answer>
void run(MinigoSearch<G>& search, Answer answer) {
  while (search.advance()) {
    for (int i = 0; i < search.num_leaves(); ++i) answer(i);
  }
}

SearchResult searched(MinigoSearch<TicTacToe>& search, const TicTacToe::State& root, int num,
                      const Value& value, const std::vector<float>& logits) {
  search.begin(root, request_of(num));
  run(search, [&](int i) { search.accept(i, logits.data(), nullptr, value(search.leaf(i))); });
  SearchResult result;
  search.finish(result);
  return result;
}

bool near(float a, float b) { return std::abs(a - b) < 1e-5f; }

const std::vector<float> kEven(9, 0.0f);

// W, N and Q of three simulations, and what remains of them after moves.
void check_worked_values() {
  const TicTacToe game;
  const Value value = [&](const auto& state) { return game.ply(state) == 0 ? 0.5f : 0.2f; };
  const auto root = game.initial_state();
  MinigoSearch<TicTacToe> search(game, settings_of(1));
  const SearchResult result = searched(search, root, 3, value, kEven);
  // The root, then the first two actions: one visit gives 0.3 - 0.2, which counts as two.
  const Node& node = search.tree().node(search.tree().root());
  TENGEN_CHECK(node.visits == 3 && near(node.value_sum, 0.5f - 0.2f - 0.2f));
  TENGEN_CHECK(near(result.root_value_to_play, 0.1f / 4.0f) && result.num_simulations == 3);
  TENGEN_CHECK(result.network_value_to_play == 0.5f && result.best_action == 0);
  for (const ActionResult& a : result.actions) {
    const bool is_visited = a.action < 2;
    TENGEN_CHECK(a.visits == (is_visited ? 1u : 0u));
    TENGEN_CHECK(near(a.value_to_play, is_visited ? 0.05f : 0.3f));
    // Exploration of the best action: 2 (1.25 + ln(19656 / 19652)) sqrt(4) / 9 / 2 = 0.2778. For
    // the other, trunc(2.5 / 9 sqrt(3) / 0.2778) = 1 is left.
    TENGEN_CHECK(near(a.policy, is_visited ? 0.5f : 0.0f));
  }
  MinigoSearch<TicTacToe> other(game, settings_of(1));
  searched(other, root, 3, value, kEven);
  Tree scratch;
  search.play(1, scratch);
  TENGEN_CHECK(search.root_visits() == 1);
  // W: its initial value from the root, and its own value.
  TENGEN_CHECK(near(search.tree().node(search.tree().root()).value_sum, -0.3f + 0.2f));
  other.play(5, scratch);
  TENGEN_CHECK(other.root_visits() == 0);
  searched(other, after(game, {5}), 1, value, kEven);
  TENGEN_CHECK(near(other.tree().node(other.tree().root()).value_sum, -0.3f + 0.2f));
  // Two moves before the next search: the second one is from the position after the first.
  const Value later = [&](const auto& state) { return game.ply(state) == 2 ? 0.6f : 0.2f; };
  other.reset();
  searched(other, root, 4, later, {20.0f, 15.0f, 0, 0, 0, 0, 0, 0, 0});
  for (const int move : {0, 1, 8}) other.play(move, scratch);
  TENGEN_CHECK(other.root_visits() == 0);
  searched(other, after(game, {0, 1, 8}), 1, later, kEven);
  TENGEN_CHECK(near(other.tree().node(other.tree().root()).value_sum, -0.4f + 0.2f));
  // A root without its tree keeps nothing, whatever was there.
  for (auto* one : {&search, &other}) {
    one->play(0, scratch);
    one->reset();
    const SearchResult next = searched(*one, after(game, {1}), 2, value, kEven);
    const Node& bare = one->tree().node(one->tree().root());
    TENGEN_CHECK(bare.visits == 2 && near(bare.value_sum, 0.2f - 0.2f) && bare.num_edges == 1);
    TENGEN_CHECK(near(next.root_value_to_play, 0.0f) && next.num_simulations == 2);
    one->reset();
    TENGEN_CHECK(one->root_visits() == 0);
  }
}

// A barred pass keeps its prior and its part of the noise, and gets no visit at any depth; it is
// taken if nothing else is legal.
void check_barred_pass() {
  const Go game = go_game("go/2/nosuicide");
  const std::vector<float> logits = {0.0f, 0.0f, 0.0f, 0.0f, 2.0f};
  const float share = std::exp(2.0f) / (4.0f + std::exp(2.0f));
  int num_forced = 0;
  for (const bool may_pass : {true, false}) {
    SearchSettings settings = settings_of(4);
    settings.noise_weight = 0.5f;
    MinigoSearch<Go> search(game, settings, may_pass);
    TENGEN_CHECK(search.may_pass() == may_pass);
    for (const bool explore : {false, true}) {
      search.reset();
      SearchRequest request = request_of(200, explore);
      search.begin(game.initial_state(), request);
      run(search, [&](int i) { search.accept(i, logits.data(), nullptr, 0.1f); });
      SearchResult result;
      search.finish(result);
      TENGEN_CHECK(result.actions.size() == 5 && (may_pass || result.best_action != 4));
      TENGEN_CHECK((result.actions[4].visits > 0) == may_pass);
      float total = 0.0f;
      for (const ActionResult& a : result.actions) total += a.prior;
      TENGEN_CHECK(near(total, 1.0f) && near(result.actions[4].prior, share) == !explore);
    }
    const auto walk = [&](const auto& self, Arena::Offset offset) -> void {
      const Node& node = search.tree().node(offset);
      if (node.num_legal == 0) return;
      const Edges edges = search.tree().edges(node);
      for (int i = 0; i < node.num_edges; ++i) {
        const bool passes = search.tree().actions(node)[edges.legal_index[i]] == 4;
        TENGEN_CHECK(may_pass || !passes || node.num_legal == 1);
        num_forced += passes && !may_pass;
        self(self, edges.child[i]);
      }
    };
    walk(walk, search.tree().root());
  }
  TENGEN_CHECK(num_forced > 0);
}

// Four waiting descents reach different leaves, each with a loss on its edge until its backup.
void check_virtual_losses() {
  const TicTacToe game;
  MinigoSearch<TicTacToe> search(game, settings_of(4));
  search.begin(game.initial_state(), request_of(4));
  TENGEN_CHECK(search.advance() && search.num_leaves() == 1);  // the root alone
  search.accept(0, kEven.data(), nullptr, 0.5f);
  TENGEN_CHECK(search.advance() && search.num_leaves() == 4 && search.num_simulations() == 5);
  TENGEN_CHECK(throws([&] { search.advance(); }));
  const Node& root = search.tree().node(search.tree().root());
  for (int i = 0; i < 4; ++i) {
    TENGEN_CHECK(near(search.tree().edges(root).value_sum[i], 0.3f - 1.0f));
    TENGEN_CHECK(search.tree().edges(root).visits[i] == 0.0f && root.visits == 1);
  }
  for (int i = 3; i >= 0; --i) search.accept(i, kEven.data(), nullptr, 0.2f);
  // A batch in progress may exceed the requested number.
  TENGEN_CHECK(!search.advance() && root.visits == 5);
  for (int i = 0; i < 4; ++i) {
    TENGEN_CHECK(near(search.tree().edges(root).value_sum[i], 0.1f));
    TENGEN_CHECK(search.tree().edges(root).visits[i] == 1.0f);
  }
}

// Two descents to one node are one leaf and one visit; both count for the batch.
void check_same_leaf() {
  const TicTacToe game;
  std::vector<float> logits(9, 0.0f);
  logits[4] = 20.0f;
  MinigoSearch<TicTacToe> search(game, settings_of(3));
  search.begin(game.initial_state(), request_of(2));
  TENGEN_CHECK(search.advance());
  search.accept(0, logits.data(), nullptr, 0.0f);
  TENGEN_CHECK(search.advance() && search.num_leaves() == 1 && search.num_simulations() == 2);
  const Node& root = search.tree().node(search.tree().root());
  const Edges edges = search.tree().edges(root);
  TENGEN_CHECK(root.num_edges == 1 && near(edges.value_sum[0], -0.2f - 3.0f));
  search.accept(0, logits.data(), nullptr, 0.4f);
  TENGEN_CHECK(edges.visits[0] == 1.0f && near(edges.value_sum[0], -0.2f - 0.4f));
  TENGEN_CHECK(root.visits == 2 && !search.advance());
}

// With equal scores the lowest action is taken, not the one that was visited first.
void check_equal_scores() {
  const TicTacToe game;
  SearchSettings settings = settings_of(1);
  settings.minigo_c_init = 0.01f;
  // 5 looks best and is lost; then 3, 1 and the others, whose priors are too small to matter.
  const std::vector<float> logits = {-30, -25, -30, -20, -30, 0, -30, -30, -30};
  const Value value = [&](const auto& state) {
    if (game.ply(state) != 1) return game.ply(state) == 0 ? 0.5f : 0.0f;
    return game.is_legal(state, 5) ? 0.1f : 1.0f;
  };
  MinigoSearch<TicTacToe> search(game, settings);
  const SearchResult result = searched(search, game.initial_state(), 11, value, logits);
  const Node& root = search.tree().node(search.tree().root());
  const Edges edges = search.tree().edges(root);
  TENGEN_CHECK(edges.legal_index[0] == 5 && edges.legal_index[1] == 3);
  for (const ActionResult& a : result.actions) {
    TENGEN_CHECK(a.visits == (a.action == 0 ? 2u : 1u));
  }
}

// A finished game is backed up each time, at once, and never waits.
void check_finished_game() {
  const TicTacToe game;
  const auto root = after(game, {0, 3, 1, 4});  // 2 wins
  std::vector<float> logits(9, 0.0f);
  logits[2] = 20.0f;
  MinigoSearch<TicTacToe> search(game, settings_of(4));
  search.begin(root, request_of(30));
  TENGEN_CHECK(search.advance());
  search.accept(0, logits.data(), nullptr, 0.0f);
  TENGEN_CHECK(!search.advance());
  SearchResult result;
  search.finish(result);
  TENGEN_CHECK(result.actions[0].action == 2 && result.actions[0].visits == 29);
  TENGEN_CHECK(near(result.actions[0].value_to_play, (-0.2f + 29.0f) / 30.0f));
  TENGEN_CHECK(near(result.root_value_to_play, 29.0f / 31.0f));
  TENGEN_CHECK(result.proof == Proof::kUnknown && result.best_action == 2);
}

// Visits and values of edges match those of their nodes, whoever moves next.
float check_node(const RandomGame& game, const Tree& tree, Arena::Offset offset,
                 const RandomGame::State& state) {
  const Node& node = tree.node(offset);
  TENGEN_CHECK(node.to_play == game.to_play(state));
  if (node.num_legal == 0) return static_cast<float>(node.visits);
  const Edges edges = tree.edges(node);
  float total = 1.0f;  // its own evaluation
  for (int i = 0; i < node.num_edges; ++i) {
    RandomGame::State next = state;
    game.apply(next, tree.actions(node)[edges.legal_index[i]]);
    const Node& child = tree.node(edges.child[i]);
    const double sum = value_for(node, child, child.value_sum);
    TENGEN_CHECK(edges.value_sum[i] == static_cast<float>(sum));
    TENGEN_CHECK(edges.visits[i] == static_cast<float>(child.visits));
    total += check_node(game, tree, edges.child[i], next);
  }
  TENGEN_CHECK(static_cast<float>(node.visits) == total);
  return total;
}

void check_random_games() {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomGame game(seed);
    MinigoSearch<RandomGame> search(game, settings_of(1 + static_cast<int>(seed % 5)));
    search.begin(game.initial_state(), request_of(60, seed % 2 == 0, seed));
    std::vector<float> logits;
    run(search, [&](int i) {
      float value;
      evaluate(game, search.leaf(i), nullptr, logits, &value);
      search.accept(i, logits.data(), nullptr, value);
    });
    check_node(game, search.tree(), search.tree().root(), game.initial_state());
    SearchResult result;
    search.finish(result);
    float policy = 0.0f;
    for (const ActionResult& a : result.actions) policy += a.policy;
    TENGEN_CHECK(std::abs(policy - 1.0f) < 1e-5f && result.num_simulations >= 60);
  }
}

void check_misuse() {
  const TicTacToe game;
  MinigoSearch<TicTacToe> search(game, settings_of(4));
  SearchResult result;
  TENGEN_CHECK(throws([&] { search.advance(); }) && throws([&] { search.finish(result); }));
  SearchRequest request = request_of(4);
  request.left_out = {{0, 4, 1}};
  TENGEN_CHECK(throws([&] { search.begin(game.initial_state(), request); }));
  TENGEN_CHECK(throws([&] { search.begin(after(game, {0, 3, 1, 4, 2}), request_of(4)); }));
  search.begin(game.initial_state(), request_of(4));
  TENGEN_CHECK(search.advance() && throws([&] { search.finish(result); }));
  std::vector<float> broken(9, std::nanf(""));
  TENGEN_CHECK(throws([&] { search.accept(0, broken.data(), nullptr, 0.0f); }));
}

}  // namespace

int main() {
  check_worked_values();
  check_barred_pass();
  check_virtual_losses();
  check_same_leaf();
  check_equal_scores();
  check_finished_game();
  check_random_games();
  check_misuse();
  return 0;
}
