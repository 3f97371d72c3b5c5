#include "selfplay/session/session.h"

#include "base/testing.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"
#include "search/testing.h"
#include "selfplay/testing.h"

using namespace tengen;

namespace {

// A network with the symmetries of the board: the logit of a cell depends on the stones in its row
// and column and on its distance to the centre.
void evaluate_equivariant(const float* planes, size_t size, float* logits, float* value) {
  const float* own = planes + size * size;
  const float* other = own + size * size;
  float total = 0.0f;
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      float sum = 0.0f;
      for (size_t k = 0; k < size; ++k) {
        sum += own[row * size + k] + own[k * size + column];
        sum -= 0.5f * (other[row * size + k] + other[k * size + column]);
      }
      const float middle = static_cast<float>(size - 1) / 2.0f;
      const float distance = std::abs(static_cast<float>(row) - middle) +
                             std::abs(static_cast<float>(column) - middle);
      logits[row * size + column] = 0.25f * sum - 0.125f * distance;
      total += distance * (own[row * size + column] - other[row * size + column]);
    }
  }
  *value = 0.0625f * total / static_cast<float>(size);
}

// Positions are evaluated under symmetries chosen by their keys. With a network that has the
// board's symmetries, the search equals one that evaluates every position untransformed.
template <Game G>
void check_symmetries(const G& game, const std::vector<int>& moves) {
  const auto size = static_cast<size_t>(game.height());
  GameSession<G> session(game, SearchSettings(), 1 << 16);
  session.begin(moves, request_of(200), "");
  while (session.next() > 0) {
    BatchBuffers& b = session.buffers();
    evaluate_equivariant(b.planes_row(0), size, b.policy_row(0), b.value.data());
    session.done();
  }
  auto state = game.initial_state();
  for (const int move : moves) game.apply(state, move);
  Search<G> search(game, SearchSettings());
  search.begin(state, request_of(200));
  std::vector<float> planes(static_cast<size_t>(game.num_planes()) * size * size);
  std::vector<float> logits(size * size);
  while (search.advance()) {
    float value;
    game.encode(search.leaf(), 0, planes.data());
    evaluate_equivariant(planes.data(), size, logits.data(), &value);
    search.accept(logits.data(), nullptr, value);
  }
  SearchResult expected;
  search.finish(expected);
  const SearchResult& result = session.result();
  TENGEN_CHECK(result.actions.size() == expected.actions.size());
  for (size_t i = 0; i < result.actions.size(); ++i) {
    TENGEN_CHECK(result.actions[i].visits == expected.actions[i].visits);
    TENGEN_CHECK(result.actions[i].prior == expected.actions[i].prior);
  }
  TENGEN_CHECK(result.best_action == expected.best_action);
}

// Returns the visits of all actions, which must equal the number of simulations.
uint32_t num_visits(const SearchResult& result) {
  uint32_t visits = 0;
  for (const ActionResult& action : result.actions) visits += action.visits;
  TENGEN_CHECK(visits == result.num_simulations);
  return visits;
}

// Runs the search. Returns the number of evaluated positions.
int count_rows(SearchSession& session) {
  int count = 0;
  drive(session.port(0), [&](BatchBuffers& buffers, int row) {
    ++count;
    evaluate_row(buffers, row);
  });
  return count;
}

// The reused subtree counts towards the requested simulations, and nothing else does.
template <Game G>
void check_kept_tree(const G& game) {
  GameSession<G> session(game, SearchSettings(), 0);
  const auto search = [&](const std::vector<int>& moves, int num_simulations, bool keeps_tree) {
    session.begin(moves, request_of(num_simulations), "", keeps_tree);
    return count_rows(session);
  };
  // Each simulation evaluates at most one position, and the root needs one more evaluation.
  TENGEN_CHECK(search({}, 300, true) <= 301 && num_visits(session.result()) == 300);
  const std::vector<int> line = session.variation(session.result().best_action, 2);
  TENGEN_CHECK(line.size() == 2);
  // A further search of the same position runs only the missing simulations.
  TENGEN_CHECK(search({}, 300, true) == 0 && num_visits(session.result()) == 300);
  TENGEN_CHECK(search({}, 320, true) <= 20 && num_visits(session.result()) == 320);
  // Two moves later, the visits of the new position are reused.
  GameSession<G> fresh(game, SearchSettings(), 0);
  fresh.begin(line, request_of(300), "");
  const int num_rows = count_rows(fresh);
  const int num_new = search(line, 300, true);
  TENGEN_CHECK(num_new < num_rows && num_visits(session.result()) == 300);
  // A request for fewer simulations than the tree has runs none and returns the result.
  TENGEN_CHECK(search(line, 10, true) == 0 && num_visits(session.result()) == 300);
  session.extend(310);
  TENGEN_CHECK(count_rows(session) <= 10 && num_visits(session.result()) == 310);
  // Without keeps_tree, or back at an earlier position, the search equals that of a new session.
  for (const bool keeps_tree : {false, true}) {
    TENGEN_CHECK(search(keeps_tree ? std::vector<int>{} : line, 300, keeps_tree) > 0);
    GameSession<G> other(game, SearchSettings(), 0);
    other.begin(keeps_tree ? std::vector<int>{} : line, request_of(300), "");
    drive(other);
    for (size_t i = 0; i < other.result().actions.size(); ++i) {
      TENGEN_CHECK(other.result().actions[i].visits == session.result().actions[i].visits);
    }
  }
  // A search that is abandoned while a row waits leaves no tree.
  session.begin(line, request_of(50), "");
  TENGEN_CHECK(session.next() == 1);
  TENGEN_CHECK(search(line, 50, true) > 0 && num_visits(session.result()) == 50);
}

void check_misuse() {
  const TicTacToe game;
  GameSession<TicTacToe> session(game, SearchSettings(), 0);
  TENGEN_CHECK(throws([&] { session.next(); }));
  TENGEN_CHECK(throws([&] { session.result(); }));
  TENGEN_CHECK(throws([&] { session.extend(10); }));
  TENGEN_CHECK(throws([&] { session.begin({0, 0}, request_of(10), ""); }));
  TENGEN_CHECK(throws([&] { session.begin({9}, request_of(10), ""); }));
  TENGEN_CHECK(throws([&] { session.begin({0, 3, 1, 4, 2}, request_of(10), ""); }));
  // A search that is abandoned while its row waits does not block the next search.
  for (int round = 0; round < 3; ++round) {
    session.begin({4}, request_of(10), "");
    TENGEN_CHECK(session.next() == 1);
    TENGEN_CHECK(throws([&] { session.result(); }));
  }
  session.begin({4}, request_of(10), "");
  drive(session);
  TENGEN_CHECK(session.result().num_simulations == 10);
}

}  // namespace

int main() {
  check_symmetries(TicTacToe(), {});
  check_symmetries(TicTacToe(), {4, 0, 5});
  check_symmetries(Gomoku(7), {24, 8, 25});
  check_symmetries(Gomoku(9, true), {0, 1, 2, 12});
  check_kept_tree(Gomoku(7));
  check_kept_tree(Gomoku(9));
  check_misuse();
  return 0;
}
