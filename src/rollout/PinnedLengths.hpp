// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/Request.hpp"
#include "engine/SamplingOptions.hpp"
#include "session/Ranks.hpp"
#include "simulate/LengthLaw.hpp"

namespace taper {

// Where responses end, if not where the model ends them: runs of a scaling study generate and train
// equally many tokens then, on whatever number of ranks. Tokens are sampled as ever.
class PinnedLengths {
 public:
  // `from` is empty (the model ends its responses), the name of a described law, or the output
  // directory of a run whose lengths come again; no length exceeds `limit` tokens. Throws Error
  // naming Rollout/Lengths if it is neither, or if the run has longer responses. Collective
  // over the world.
  PinnedLengths(const std::string& from, std::uint64_t seed, int limit, const Ranks& ranks);

  // Whether there are such lengths. Then no token must end a response: pass no StopOptions.
  bool is_on() const { return law_ || !recorded_.empty(); }

  // Gives each response its length, which depends on the key of its prompt and its number alone.
  // `samples` of each prompt are those of a run that starts no more; the others have lengths of
  // their own. If a recorded run lacks the iteration, or has fewer responses in it, they come again
  // from the first.
  void pin(std::vector<Request>& requests, const SamplingOptions& sampling, int samples) const;

 private:
  std::vector<std::int32_t> lengths(std::int64_t iteration, int count) const;
  const std::vector<std::int32_t>& recorded(std::int64_t iteration) const;

  std::optional<LengthLaw> law_;
  std::uint64_t seed_;
  int limit_;
  std::map<std::int64_t, std::vector<std::int32_t>> recorded_;  // by iteration; of its responses
};

}  // namespace taper
