#pragma once
// A search of one game under external control by several threads, each with its own port.

#include <memory>
#include <vector>

#include "inference/port.h"
#include "search/shared/shared_search.h"
#include "search/tree/variation.h"
#include "selfplay/leaves/leaf_server.h"
#include "selfplay/session/session.h"

namespace tengen {

// A search by several threads in one tree.
template <Game G>
class SharedGameSession final : public SearchSession {
 public:
  // Every port has `batch_rows` rows.
  SharedGameSession(const G& game, const SearchSettings& settings, int num_threads, int batch_rows,
                    size_t cache_bytes)
      : game_(game), search_(game_, settings, num_threads, batch_rows) {
    for (int i = 0; i < num_threads; ++i) {
      ports_.push_back(
          std::make_unique<ThreadPort>(this, i, batch_rows, cache_bytes, settings.root_symmetries));
    }
  }

  void begin(const std::vector<int>& moves, const SearchRequest& request,
             const std::string& variant, bool keeps_tree = false) override {
    const typename G::State state = position_after(game_, variant, moves);
    if (keeps_tree && line_.leads_to(variant, moves)) go_on(moves);
    line_ = {variant, moves};
    search_.begin(state, request);
    for (auto& port : ports_) port->clear();
  }
  void extend(int num_simulations) override { search_.extend(num_simulations); }
  Port& port(int index) override { return *ports_.at(static_cast<size_t>(index)); }
  void stop() override { search_.stop(); }
  const SearchResult& result() override {
    search_.finish(result_);
    return result_;
  }
  std::vector<int> variation(int action, size_t max_length) const override {
    return principal_variation(search_.tree(), action, max_length);
  }

 private:
  class ThreadPort final : public Port {
   public:
    ThreadPort(SharedGameSession* session, int index, int batch_rows, size_t cache_bytes,
               bool root_symmetries)
        : search_(session->search_),
          index_(index),
          leaves_(session->game_, batch_rows, cache_bytes, HasScore<G>, root_symmetries) {}

    int next() override {
      for (;;) {
        const uint32_t seen = search_.news();
        const int num_rows = leaves_.fill([&] {
          for (auto& descent : search_.descents(index_)) {
            if (!descent.is_waiting()) leaves_.run(descent, stats_);
          }
        });
        if (num_rows > 0 || !search_.wait(index_, seen)) return num_rows;
      }
    }
    void done() override {
      leaves_.answer(stats_);
      search_.tell(index_);
    }
    BatchBuffers& buffers() override { return leaves_.buffers(); }
    void clear() { leaves_.clear(); }  // an abandoned search may have waiting rows

   private:
    SharedSearch<G>& search_;
    int index_;
    LeafServer<G, Descent<G>> leaves_;
    WorkerStats stats_;
  };

  void go_on(const std::vector<int>& moves) {
    if (moves.size() == line_.moves.size()) search_.stay();
    for (size_t i = line_.moves.size(); i < moves.size(); ++i) search_.play(moves[i]);
  }

  const G game_;
  SharedSearch<G> search_;
  SearchedLine line_;
  std::vector<std::unique_ptr<ThreadPort>> ports_;
  SearchResult result_;
};

}  // namespace tengen
