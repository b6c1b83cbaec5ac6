// SPDX-License-Identifier: Apache-2.0
#include "rl/SampleSet.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// Most bytes that a rank sends in one round of an exchange, unless one sample has more.
constexpr std::size_t kRoundBytes = std::size_t{16} << 20;

SampleSummary summary_of(const Sample& s, int holder) {
  return {s.id,
          holder,
          static_cast<int>(s.prompt.size()),
          static_cast<int>(s.response.size()),
          static_cast<int>(s.loss_tokens()),
          s.finish,
          s.unscored,
          s.score,
          s.unshaped_score,
          s.reward,
          s.rewards};
}

std::vector<std::int64_t> sizes_of(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> sizes;
  for (const std::string& text : texts) sizes.push_back(std::ssize(text));
  return sizes;
}

}  // namespace

std::size_t prompt_end(const std::vector<SampleSummary>& samples, std::size_t begin) {
  std::size_t end = begin;
  while (end < samples.size() && samples[end].id.prompt == samples[begin].id.prompt) ++end;
  return end;
}

SampleSet::SampleSet(std::vector<Sample> samples) : here_(std::move(samples)) {
  std::ranges::sort(here_, {}, &Sample::id);
  summarize();
}

SampleSet::SampleSet(const Group& group, std::vector<Sample> mine)
    : group_(&group), here_(std::move(mine)) {
  std::ranges::sort(here_, {}, &Sample::id);
  summarize();
}

// Before there are rows, here() has samples that only this rank brings; later several ranks may
// hold one, for which one of them speaks.
void SampleSet::summarize() {
  std::string bytes;
  ByteWriter out(bytes);
  for (std::size_t k = 0; k < here_.size(); ++k)
    if (rows_.empty() || speaks_for(k)) pack(out, summary_of(here_[k], rank()));
  std::string every = bytes;
  if (group_ != nullptr) {
    std::vector<std::int64_t> counts(group_->size());
    all_gather(*group_, counts, std::vector<std::int64_t>{std::ssize(bytes)});
    every.resize(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0LL)));
    all_gather_v(*group_, every, bytes, counts);
  }
  all_.clear();
  for (ByteReader in(every); !in.done();) unpack(in, all_.emplace_back());
  std::ranges::sort(all_, {}, &SampleSummary::id);
  set_rows();
}

void SampleSet::set_rows() {
  rows_.clear();
  for (const Sample& s : here_) {
    const auto row = std::ranges::lower_bound(all_, s.id, {}, &SampleSummary::id);
    rows_.push_back(static_cast<int>(row - all_.begin()));
  }
}

void SampleSet::move_to(const RankGrid& grid, const std::vector<int>& replica) {
  TAPER_EXPECT(std::ssize(replica) == size());
  TAPER_EXPECT(grid.ranks() == ranks());
  if (group_ == nullptr || (grid == grid_ && replica == replica_)) return;
  std::vector<std::vector<int>> targets(here_.size());
  for (std::size_t k = 0; k < here_.size(); ++k) {
    if (!speaks_for(k)) continue;
    targets[k].resize(static_cast<std::size_t>(grid.tp));
    std::iota(targets[k].begin(), targets[k].end(), replica[rows_[k]] * grid.tp);
  }
  exchange(targets);
  for (std::size_t row = 0; row < all_.size(); ++row) all_[row].holder = replica[row] * grid.tp;
  set_rows();
  grid_ = grid;
  replica_ = replica;
}

void SampleSet::exchange(const std::vector<std::vector<int>>& targets) {
  const std::size_t ranks = static_cast<std::size_t>(group_->size());
  std::vector<Sample> come;
  std::size_t next = 0;
  for (std::vector<std::int32_t> left{1}; left.front() != 0;) {
    std::vector<std::string> out(ranks);
    std::size_t bytes = 0;
    for (; next < here_.size() && bytes < kRoundBytes; ++next) {
      for (const int rank : targets[next]) {
        const std::size_t before = out[rank].size();
        ByteWriter to(out[rank]);
        pack(to, here_[next]);
        bytes += out[rank].size() - before;
      }
      here_[next] = Sample();
    }
    const std::vector<std::int64_t> out_sizes = sizes_of(out);
    std::vector<std::int64_t> in_sizes(ranks);
    const std::vector<std::int64_t> ones(ranks, 1);
    all_to_all_v(*group_, in_sizes, ones, out_sizes, ones);
    std::string sent, received;
    for (std::string& part : out) sent += std::exchange(part, {});
    received.resize(
        static_cast<std::size_t>(std::accumulate(in_sizes.begin(), in_sizes.end(), 0LL)));
    all_to_all_v(*group_, received, in_sizes, sent, out_sizes);
    for (ByteReader in(received); !in.done();) unpack(in, come.emplace_back());
    left.front() = next < here_.size() ? 1 : 0;
    all_reduce_max(*group_, left);
  }
  std::ranges::sort(come, {}, &Sample::id);
  here_ = std::move(come);
}

void SampleSet::gather_bytes(std::span<std::byte> by_row, std::span<const std::byte> mine,
                             std::size_t size) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks()), 0);
  for (const SampleSummary& s : all_) counts[s.holder] += static_cast<std::int64_t>(size);
  std::vector<std::byte> by_rank(mine.begin(), mine.end());
  if (group_ != nullptr) {
    by_rank.resize(by_row.size());
    all_gather_v(*group_, by_rank, mine, counts);
  }
  std::vector<std::int64_t> next(counts.size(), 0);
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::int64_t{0});
  for (std::size_t row = 0; row < all_.size(); ++row) {
    std::int64_t& from = next[all_[row].holder];
    std::copy_n(by_rank.begin() + from, size,
                by_row.begin() + static_cast<std::ptrdiff_t>(row * size));
    from += static_cast<std::int64_t>(size);
  }
}

SampleSet SampleSet::extract(const std::vector<bool>& marked) {
  TAPER_EXPECT(std::ssize(marked) == size());
  SampleSet taken;
  taken.group_ = group_;
  std::vector<Sample> stay;
  for (std::size_t k = 0; k < here_.size(); ++k)
    (marked[rows_[k]] ? taken.here_ : stay).push_back(std::move(here_[k]));
  here_ = std::move(stay);
  std::vector<SampleSummary> rest;
  for (std::size_t row = 0; row < all_.size(); ++row)
    (marked[row] ? taken.all_ : rest).push_back(std::move(all_[row]));
  all_ = std::move(rest);
  replica_.clear();
  set_rows();
  taken.set_rows();
  return taken;
}

void SampleSet::append(SampleSet&& more) {
  if (empty()) group_ = more.group_;
  TAPER_EXPECT(group_ == more.group_);
  TAPER_EXPECT(empty() || more.empty() || all_.back().id < more.all_.front().id);
  std::move(more.all_.begin(), more.all_.end(), std::back_inserter(all_));
  std::move(more.here_.begin(), more.here_.end(), std::back_inserter(here_));
  replica_.clear();
  set_rows();
}

double sum_over_tokens(const SampleSet& samples,
                       const std::function<double(std::size_t k, std::size_t t)>& term) {
  const std::vector<double> sums = samples.gather([&](std::size_t k) {
    const Sample& s = samples.here()[k];
    double sum = 0.0;
    for (std::size_t t = 0; t < s.response.size(); ++t)
      if (s.carries_loss(t)) sum += term(k, t);
    return sum;
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::int64_t SampleSet::response_tokens() const {
  std::int64_t tokens = 0;
  for (const SampleSummary& s : all_) tokens += s.response_tokens;
  return tokens;
}

}  // namespace taper
