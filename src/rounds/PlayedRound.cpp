// SPDX-License-Identifier: Apache-2.0
#include "rounds/PlayedRound.hpp"

#include <algorithm>

namespace taper {

PlayedRound play_round(const Round& round, const Workload& like, std::int64_t prompt,
                       const ResponseLength& length) {
  PlayedRound played;
  Workload& work = played.trace.work = like;
  work.samples = round.samples;
  work.sequences = static_cast<int>(std::ssize(round.prompts)) * round.samples;
  work.prompt_tokens = prompt * work.sequences;
  if (round.is_race)
    work.surplus = {static_cast<int>(std::ssize(round.prompts)) - round.goal.groups,
                    round.samples - round.goal.samples};
  Race race(round.goal);
  const auto each = [&](const auto& visit) {
    for (std::int64_t i = 0; i < std::ssize(round.prompts); ++i)
      for (int k = 0; k < round.samples; ++k)
        visit(ResponseId{i, k}, length(round.prompts[static_cast<std::size_t>(i)], k));
  };
  each([&](const ResponseId& id, int tokens) { race.ended(id, tokens); });
  played.kept = race.kept();
  played.longest_kept.assign(round.prompts.size(), 0);
  each([&](const ResponseId& id, int tokens) {
    int& longest = played.longest_kept[static_cast<std::size_t>(id.prompt)];
    if (std::binary_search(played.kept.begin(), played.kept.end(), id))
      longest = std::max(longest, tokens);
    const int end = std::min(tokens, race.bound(id.prompt));
    played.trace.outcomes.push_back(
        {std::ssize(played.trace.outcomes), static_cast<std::int32_t>(prompt), end, end < tokens});
  });
  return played;
}

}  // namespace taper
