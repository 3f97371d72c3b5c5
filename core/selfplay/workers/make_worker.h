#pragma once
// Creates the self-play worker for a search policy.

#include <memory>
#include <utility>

#include "base/error.h"
#include "selfplay/workers/minigo_worker.h"
#include "selfplay/workers/worker.h"

namespace tengen {

// Throws Error if the policy is minigo and the game is external.
template <Game G>
std::unique_ptr<SelfplayPort> make_selfplay_worker(const G& game, const SelfplaySettings& settings,
                                                   std::shared_ptr<GameQueue> queue,
                                                   std::shared_ptr<GameSink> sink) {
  if (settings.search.policy != RootPolicy::kMinigo) {
    return std::make_unique<SelfplayWorker<G>>(game, settings, std::move(queue), std::move(sink));
  }
  if constexpr (!ExternallyPlayed<G>) {
    return std::make_unique<MinigoWorker<G>>(game, settings, std::move(queue), std::move(sink));
  }
  throw Error("search.policy (minigo) must be puct or gumbel for a game in Python; choose one");
}

}  // namespace tengen
