// SPDX-License-Identifier: Apache-2.0
#include "reward/AdaptiveTimeout.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/Fingerprint.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

std::uint64_t key_of(const std::string& reward, std::uint64_t prompt) {
  return Fingerprint(reward).add(prompt).value();
}

void keep_longest(Anchors::Table& table, std::uint64_t key, std::int64_t ns) {
  std::int64_t& longest = table[key];
  longest = std::max(longest, ns);
}

}  // namespace

double adaptive_timeout(const AdaptiveTimeoutOptions& options, std::optional<double> anchor) {
  if (!anchor) return options.most;
  return std::min(std::max(options.least, options.factor * *anchor), options.most);
}

std::optional<double> Anchors::find(const std::string& reward, std::uint64_t prompt) const {
  const auto found = shared_.find(key_of(reward, prompt));
  if (found == shared_.end()) return std::nullopt;
  return static_cast<double>(found->second) / 1e9;
}

void Anchors::note(const std::string& reward, std::uint64_t prompt, double seconds) {
  keep_longest(noted_, key_of(reward, prompt), std::llround(seconds * 1e9));
}

void Anchors::share(const Group& group) {
  std::vector<std::int64_t> mine;  // key, ns, key, ns, ...
  for (const auto& [key, ns] : noted_)
    mine.insert(mine.end(), {static_cast<std::int64_t>(key), ns});
  noted_.clear();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()));
  all_gather(group, counts, std::vector<std::int64_t>{std::ssize(mine)});
  const std::int64_t words = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<std::int64_t> all(static_cast<std::size_t>(words));
  all_gather_v(group, all, mine, counts);
  for (std::size_t i = 0; i < all.size(); i += 2)
    keep_longest(shared_, static_cast<std::uint64_t>(all[i]), all[i + 1]);
}

}  // namespace taper
