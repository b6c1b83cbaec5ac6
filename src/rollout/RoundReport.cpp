// SPDX-License-Identifier: Apache-2.0
#include "rollout/RoundReport.hpp"

#include <algorithm>
#include <string>

namespace taper {

std::vector<bool> kept_rows(const Round& round, const std::vector<SampleSummary>& samples) {
  if (!round.is_race) return std::vector<bool>(samples.size(), true);
  Race race(round.goal);
  for (const SampleSummary& s : samples)
    if (s.finish != FinishReason::kAbort) race.ended(s.id, s.response_tokens);
  const std::vector<ResponseId> kept = race.kept();
  std::vector<bool> rows;
  for (const SampleSummary& s : samples)
    rows.push_back(std::binary_search(kept.begin(), kept.end(), s.id));
  return rows;
}

RoundReport::RoundReport(const Round& round, const std::vector<SampleSummary>& samples,
                         const std::vector<bool>& kept_rows)
    : kind(round.kind), prompts(std::ssize(round.prompts)), responses(std::ssize(samples)) {
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const SampleSummary& s = samples[row];
    tokens += s.response_tokens;
    aborted += s.finish == FinishReason::kAbort ? 1 : 0;
    if (kept_rows[row]) {
      ++kept;
      longest_kept = std::max(longest_kept, s.response_tokens);
    } else {
      unkept_tokens += s.response_tokens;
    }
  }
}

MetricValues round_metrics(std::span<const RoundReport> rounds) {
  double shorts = 0, longs = 0, started = 0, kept = 0, aborted = 0, unkept = 0, longest = 0;
  for (const RoundReport& r : rounds) {
    shorts += r.kind == RoundKind::kShort ? 1 : 0;
    longs += r.kind == RoundKind::kLong ? 1 : 0;
    started += static_cast<double>(r.responses);
    kept += static_cast<double>(r.kept);
    aborted += static_cast<double>(r.aborted);
    unkept += static_cast<double>(r.unkept_tokens);
    longest = std::max(longest, static_cast<double>(r.longest_kept));
  }
  const double waiting = rounds.empty() ? 0.0 : static_cast<double>(rounds.back().waiting);
  return {{"rollout/short_rounds", shorts},       {"rollout/long_rounds", longs},
          {"rollout/started_responses", started}, {"rollout/kept_responses", kept},
          {"rollout/aborted_responses", aborted}, {"rollout/unkept_tokens", unkept},
          {"rollout/longest_kept", longest},      {"rollout/waiting_prompts", waiting}};
}

void add_rounds(RunFile& file, std::int64_t iteration, std::span<const RoundReport> rounds) {
  std::int64_t generation = 0;
  for (const RoundReport& r : rounds)
    file.add_record("rounds", iteration,
                    {{"generation", generation++},
                     {"kind", std::string(to_string(r.kind))},
                     {"prompts", r.prompts},
                     {"responses", r.responses},
                     {"kept", r.kept},
                     {"aborted", r.aborted},
                     {"tokens", r.tokens},
                     {"unkept_tokens", r.unkept_tokens},
                     {"longest_kept", static_cast<std::int64_t>(r.longest_kept)},
                     {"waiting", r.waiting}});
}

}  // namespace taper
