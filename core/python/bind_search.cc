// Search settings and results, a search with the hash evaluator for tests, and the vector kernels.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "inference/evaluators.h"
#include "python/bindings.h"
#include "python/python_source.h"
#include "search/minigo/minigo_search.h"
#include "search/serial/search.h"
#include "simd/kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tengen {
namespace {

using Nodes = nb::typed<nb::list, nb::typed<nb::dict, nb::str, nb::any>>;

// Returns the complete tree in breadth-first order, one dict per node.
Nodes dump_tree(const Tree& tree) {
  Nodes nodes;
  std::vector<Arena::Offset> queue{tree.root()};
  for (size_t i = 0; i < queue.size(); ++i) {
    const Node& node = tree.node(queue[i]);
    nb::list edges;
    if (node.num_edges > 0) {
      const Edges e = tree.edges(node);
      for (int k = 0; k < node.num_edges; ++k) {
        edges.append(nb::make_tuple(tree.actions(node)[e.legal_index[k]], e.prior[k],
                                    static_cast<int>(e.visits[k]), e.value_sum[k], queue.size()));
        queue.push_back(e.child[k]);
      }
    }
    nb::dict item;
    item["visits"] = node.visits;
    item["value_sum"] = node.value_sum;
    item["value_to_play"] = node.value_to_play;
    item["to_play"] = static_cast<int>(node.to_play);
    item["proof"] = static_cast<int>(node.proof);
    item["num_legal"] = static_cast<int>(node.num_legal);
    if (tree.keeps_scores()) {
      const NodeScore& score = tree.score_of(node);
      item["score"] = nb::make_tuple(score.win_loss_sum, score.score_sum, score.score_to_play);
    }
    item["edges"] = edges;  // (action, prior, visits, value_sum, index of the child's dict)
    nodes.append(item);
  }
  return nodes;
}

// Searches the position after `moves`, then plays each move of `then` and searches again. Returns
// the last result and tree. `evaluate()` accepts the waiting leaves; `prepare` is called with the
// next request after each move.
template <Game G, class S, class Evaluate, class Prepare>
std::pair<SearchResult, Nodes> search_each(const G& game, S& search, const std::vector<int>& moves,
                                           SearchRequest request, const std::vector<int>& then,
                                           Evaluate&& evaluate, Prepare&& prepare) {
  typename G::State state = game.initial_state();
  play_moves(game, state, moves);
  Tree scratch;
  SearchResult result;
  for (auto next = then.begin();; ++next) {
    request.ply = static_cast<uint32_t>(game.ply(state));
    search.begin(state, request);
    while (search.advance()) evaluate();
    search.finish(result);
    if (next == then.end()) break;
    search.play(*next, scratch);
    prepare(request);
    game.apply(state, *next);
  }
  return {result, dump_tree(search.tree())};
}

template <Game G>
auto hash_search(const G& game, const std::vector<int>& moves, const SearchSettings& settings,
                 const SearchRequest& request, const std::vector<int>& then) {
  Search<G> search(game, settings);
  std::vector<float> logits(static_cast<size_t>(game.num_actions()));
  const auto evaluate = [&] {
    if (search.at_unknown_move()) return;
    const Key128 key = game.key(search.leaf());
    float value;
    float score[2];
    hash_evaluate(key, game.num_actions(), logits.data(), &value);
    hash_score(key, value, score);
    search.accept(logits.data(), nullptr, value, score);
  };
  return search_each(game, search, moves, request, then, evaluate, [](SearchRequest&) {});
}

// Same as hash_search() with the policy minigo. With `clears`, each search except the first is a
// full ply of self-play: it starts without a tree, and runs one more simulation per visit of the
// old root.
template <Game G>
auto minigo_hash_search(const G& game, const std::vector<int>& moves,
                        const SearchSettings& settings, const SearchRequest& request,
                        const std::vector<int>& then, bool clears, bool may_pass) {
  MinigoSearch<G> search(game, settings, may_pass);
  std::vector<float> logits(static_cast<size_t>(game.num_actions()));
  const auto evaluate = [&] {
    for (int leaf = 0; leaf < search.num_leaves(); ++leaf) {
      float value;
      hash_evaluate(game.key(search.leaf(leaf)), game.num_actions(), logits.data(), &value);
      search.accept(leaf, logits.data(), nullptr, value);
    }
  };
  const auto prepare = [&](SearchRequest& next) {
    if (!clears) return;
    next.num_simulations = request.num_simulations + static_cast<int>(search.root_visits());
    search.reset();
  };
  return search_each(game, search, moves, request, then, evaluate, prepare);
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::enum_<RootPolicy>(m, "RootPolicy")
      .value("PUCT", RootPolicy::kPuct)
      .value("GUMBEL", RootPolicy::kGumbel)
      .value("MINIGO", RootPolicy::kMinigo);

  nb::class_<SearchSettings>(m, "SearchSettings", "See tengen.search.SearchConfig.")
      .def(nb::init<>())
      .def_rw("policy", &SearchSettings::policy)
      .def_rw("cpuct", &SearchSettings::cpuct)
      .def_rw("cpuct_log", &SearchSettings::cpuct_log)
      .def_rw("cpuct_base", &SearchSettings::cpuct_base)
      .def_rw("cpuct_stdev_scale", &SearchSettings::cpuct_stdev_scale)
      .def_rw("fpu_reduction", &SearchSettings::fpu_reduction)
      .def_rw("root_fpu_reduction", &SearchSettings::root_fpu_reduction)
      .def_rw("root_symmetries", &SearchSettings::root_symmetries)
      .def_rw("noise_alpha_total", &SearchSettings::noise_alpha_total)
      .def_rw("noise_weight", &SearchSettings::noise_weight)
      .def_rw("noise_shaped", &SearchSettings::noise_shaped)
      .def_rw("root_temperature", &SearchSettings::root_temperature)
      .def_rw("forced_playouts", &SearchSettings::forced_playouts)
      .def_rw("lcb_stdevs", &SearchSettings::lcb_stdevs)
      .def_rw("score_weight", &SearchSettings::score_weight)
      .def_rw("score_center_zero_weight", &SearchSettings::score_center_zero_weight)
      .def_rw("score_scale", &SearchSettings::score_scale)
      .def_rw("gumbel_considered", &SearchSettings::gumbel_considered)
      .def_rw("gumbel_visit", &SearchSettings::gumbel_visit)
      .def_rw("gumbel_scale", &SearchSettings::gumbel_scale)
      .def_rw("minigo_c_init", &SearchSettings::minigo_c_init)
      .def_rw("minigo_c_base", &SearchSettings::minigo_c_base)
      .def_rw("minigo_value_penalty", &SearchSettings::minigo_value_penalty)
      .def_rw("minigo_virtual_losses", &SearchSettings::minigo_virtual_losses)
      .def_rw("minigo_noise_alpha", &SearchSettings::minigo_noise_alpha);

  nb::class_<LeftOut>(m, "LeftOut", "An action that a player must not take near the root.")
      .def(nb::init<int, int, int>(), "player"_a, "action"_a, "depth"_a)
      .def_ro("player", &LeftOut::player)
      .def_ro("action", &LeftOut::action)
      .def_ro("depth", &LeftOut::depth);

  nb::class_<SearchRequest>(m, "SearchRequest", "The length and the random streams of one search.")
      .def(nb::init<>())
      .def_rw("num_simulations", &SearchRequest::num_simulations)
      .def_rw("left_out", &SearchRequest::left_out)
      .def_rw("keep_squares", &SearchRequest::keep_squares)
      .def_rw("explore", &SearchRequest::explore)
      .def_rw("seed", &SearchRequest::seed)
      .def_rw("generation", &SearchRequest::generation)
      .def_rw("game", &SearchRequest::game)
      .def_rw("ply", &SearchRequest::ply)
      .def_rw("keep_scores", &SearchRequest::keep_scores)
      .def_rw("considers_all", &SearchRequest::considers_all);

  nb::class_<ActionResult>(m, "ActionResult", "A search's result for one legal action.")
      .def_ro("action", &ActionResult::action)
      .def_ro("prior", &ActionResult::prior)
      .def_ro("visits", &ActionResult::visits)
      .def_ro("value_to_play", &ActionResult::value_to_play)
      .def_ro("policy", &ActionResult::policy)
      .def_ro("score_to_play", &ActionResult::score_to_play)
      .def_ro("utility_to_play", &ActionResult::utility_to_play)
      .def_ro("standard_error", &ActionResult::standard_error)
      .def_prop_ro("proof", [](const ActionResult& a) { return static_cast<int>(a.proof); });

  nb::class_<SearchResult>(m, "SearchResult", "The result of a search; see ActionResult.")
      .def_ro("actions", &SearchResult::actions)
      .def_ro("root_value_to_play", &SearchResult::root_value_to_play)
      .def_ro("root_score_to_play", &SearchResult::root_score_to_play)
      .def_ro("has_scores", &SearchResult::has_scores)
      .def_ro("network_value_to_play", &SearchResult::network_value_to_play)
      .def_ro("num_simulations", &SearchResult::num_simulations)
      .def_ro("considered_prior", &SearchResult::considered_prior)
      .def_ro("best_action", &SearchResult::best_action)
      .def_prop_ro("proof", [](const SearchResult& r) { return static_cast<int>(r.proof); });

  m.def(
      "hash_search",
      [](const nb::object& game, const std::vector<int>& moves, const SearchSettings& settings,
         const SearchRequest& request, const std::vector<int>& then) {
        return with_any_game(game, [&](const auto& rules) {
          return hash_search(rules, moves, settings, request, then);
        });
      },
      "game"_a, "moves"_a, "settings"_a, "request"_a, "then"_a = std::vector<int>{},
      "Searches the position after `moves` with the hash evaluator, then plays the moves `then`\n"
      "with a search (and tree reuse) after each. Returns (result, nodes) of the last search.");
  m.def(
      "minigo_hash_search",
      [](const std::string& game, const std::vector<int>& moves, const SearchSettings& settings,
         const SearchRequest& request, const std::vector<int>& then, bool clears, bool may_pass) {
        return with_game(game, [&](const auto& rules) {
          return minigo_hash_search(rules, moves, settings, request, then, clears, may_pass);
        });
      },
      "game"_a, "moves"_a, "settings"_a, "request"_a, "then"_a = std::vector<int>{}, nb::kw_only(),
      "clears"_a = false, "may_pass"_a = true,
      "Like hash_search, with the policy minigo. With `clears`, a search starts without a tree\n"
      "and runs one more simulation for each visit that a reused root would have had. Without\n"
      "`may_pass`, no descent passes if another move is legal.");
  m.def(
      "hash_evaluate",
      [](uint64_t lo, uint64_t hi, int num_actions) {
        std::vector<float> logits(static_cast<size_t>(num_actions));
        float value;
        hash_evaluate({lo, hi}, num_actions, logits.data(), &value);
        return std::make_pair(logits, value);
      },
      "lo"_a, "hi"_a, "num_actions"_a, "Returns (logits, value_to_play) for a position's key.");
  m.def(
      "hash_score",
      [](uint64_t lo, uint64_t hi, float value) {
        float score[2];
        hash_score({lo, hi}, value, score);
        return std::make_pair(score[0], score[1]);
      },
      "lo"_a, "hi"_a, "value"_a,
      "Returns (mean, standard deviation) in points that match hash_evaluate().");
  m.def("expected_saturated", &expected_saturated, "mean"_a, "stdev"_a,
        "Returns E[2 / pi * atan(x)] for a normally distributed x.");
  m.def("considered_visits", &considered_visits, "num_considered"_a, "num_simulations"_a,
        "Returns the visit count that each simulation of sequential halving requires.");

  m.def("kernel_names", [] {
    std::vector<std::string> names;
    for (const char* name : {"baseline", "avx2", "avx512"}) {
      if (simd::kernels_by_name(name) != nullptr) names.emplace_back(name);
    }
    return names;
  });
  m.def("kernel_name", [] { return std::string(simd::kernels().name); });
}

}  // namespace tengen
