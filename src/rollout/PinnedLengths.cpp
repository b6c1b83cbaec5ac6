// SPDX-License-Identifier: Apache-2.0
#include "rollout/PinnedLengths.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "Rollout/Lengths";

std::string no_run_text(const std::string& from) {
  const std::string is = std::string(kName) + " is " + path_text(from) + " (";
  std::error_code ignored;
  if (fs::exists(from, ignored)) return is + "no run.h5 in it); name the output directory of a run";
  std::vector<std::string> laws;
  for (const auto& [name, law] : named_length_laws()) laws.push_back(name);
  const std::string similar = nearest(from, laws);
  return is + "neither a law of lengths nor a directory); " +
         (!similar.empty() ? "did you mean " + similar + "?"
                           : path_advice(from) + ", or name a law: " + join(laws));
}

// A line for each iteration: its number, and its lengths.
std::string recorded_lengths_text(const std::string& from, int limit) {
  const fs::path run_file = RunDirectory(from).run_file();
  TAPER_VALIDATE(fs::exists(run_file), no_run_text(from));
  const RunFile file = RunFile::load(run_file);
  std::ostringstream text;
  std::int32_t longest = 0;
  for (const auto& [iteration, lengths] : file.lengths()) {
    if (lengths.empty()) continue;
    longest = std::max(longest, *std::max_element(lengths.begin(), lengths.end()));
    text << iteration << ' ' << join(lengths, " ") << '\n';
  }
  TAPER_VALIDATE(longest > 0, kName << " is " << path_text(from)
                                    << " (its run.h5 contains no responses); name another run");
  TAPER_VALIDATE(longest <= limit, kName << " is " << path_text(from) << " (it has responses of "
                                         << longest << " tokens, Rollout/Max New Tokens is "
                                         << limit << "); raise Rollout/Max New Tokens to "
                                         << longest);
  return text.str();
}

}  // namespace

PinnedLengths::PinnedLengths(const std::string& from, std::uint64_t seed, int limit,
                             const Ranks& ranks)
    : law_(length_law(from)), seed_(seed), limit_(limit) {
  if (from.empty() || law_) return;
  std::istringstream text(from_rank_0(ranks, [&] { return recorded_lengths_text(from, limit); }));
  for (std::string line; std::getline(text, line);) {
    std::istringstream numbers(line);
    std::int64_t iteration = 0;
    numbers >> iteration;
    recorded_[iteration] = {std::istream_iterator<std::int32_t>(numbers), {}};
  }
}

const std::vector<std::int32_t>& PinnedLengths::recorded(std::int64_t iteration) const {
  const auto found = recorded_.find(iteration);
  if (found != recorded_.end()) return found->second;
  return std::next(recorded_.begin(), (iteration - 1) % std::ssize(recorded_))->second;
}

std::vector<std::int32_t> PinnedLengths::lengths(std::int64_t iteration, int count) const {
  if (!law_) return recorded(iteration);
  return draw_lengths(*law_, seed_, iteration, count, limit_);
}

void PinnedLengths::pin(std::vector<Request>& requests, const SamplingOptions& sampling,
                        int samples) const {
  if (!is_on()) return;
  // An iteration, and a place in its lengths. Further samples have those of iterations that no run
  // comes to.
  const auto place_of = [&](const Request& r, int k) {
    const PromptKey key = sampling.key_of(r.first.prompt);
    const auto iteration = static_cast<std::int64_t>(key.iteration);
    const auto ordinal = static_cast<int>(key.ordinal);
    constexpr std::int64_t kFurther = 1 << 23;
    if (k < samples) return std::pair(iteration, ordinal * samples + k);
    return std::pair(iteration + kFurther, ordinal * samples + k - samples);
  };
  std::map<std::int64_t, int> counts;
  const auto each = [&](const auto& visit) {
    for (Request& r : requests)
      for (int k = 0; k < r.samples; ++k) visit(r, place_of(r, k));
  };
  each([&](const Request&, const std::pair<std::int64_t, int>& place) {
    counts[place.first] = std::max(counts[place.first], place.second + 1);
  });
  std::map<std::int64_t, std::vector<std::int32_t>> drawn;
  for (const auto& [iteration, count] : counts) drawn[iteration] = lengths(iteration, count);
  each([&](Request& r, const std::pair<std::int64_t, int>& place) {
    const std::vector<std::int32_t>& of = drawn.at(place.first);
    r.pinned.push_back(of[static_cast<std::size_t>(place.second) % of.size()]);
  });
}

}  // namespace taper
