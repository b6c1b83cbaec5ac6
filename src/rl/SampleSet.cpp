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
#include "rl/MicroBatch.hpp"

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

// What goes to each rank of a group.
using Outbox = std::vector<std::string>;

std::size_t bytes_of(const Outbox& out) {
  std::size_t bytes = 0;
  for (const std::string& text : out) bytes += text.size();
  return bytes;
}

// Calls pack(i, out) for i = 0 to count - 1, sends what it writes, and reads what comes by
// unpack(in), in rounds of bounded size. Collective over `group`.
template <class Pack, class Unpack>
void exchange(const Group& group, std::size_t count, const Pack& pack, const Unpack& unpack) {
  const std::size_t ranks = static_cast<std::size_t>(group.size());
  std::size_t next = 0;
  for (std::vector<std::int32_t> left{1}; left.front() != 0;) {
    Outbox out(ranks);
    while (next < count && bytes_of(out) < kRoundBytes) pack(next++, out);
    const std::vector<std::int64_t> out_sizes = sizes_of(out);
    std::vector<std::int64_t> in_sizes(ranks);
    const std::vector<std::int64_t> ones(ranks, 1);
    all_to_all_v(group, in_sizes, ones, out_sizes, ones);
    std::string sent, received;
    for (std::string& part : out) sent += std::exchange(part, {});
    received.resize(
        static_cast<std::size_t>(std::accumulate(in_sizes.begin(), in_sizes.end(), 0LL)));
    all_to_all_v(group, received, in_sizes, sent, out_sizes);
    for (ByteReader in(received); !in.done();) unpack(in);
    left.front() = next < count ? 1 : 0;
    all_reduce_max(group, left);
  }
}

void add(Outbox& out, const std::vector<int>& ranks, const Sample& sample) {
  for (const int rank : ranks) {
    ByteWriter to(out[static_cast<std::size_t>(rank)]);
    pack(to, sample);
  }
}

}  // namespace

std::size_t prompt_end(const std::vector<SampleSummary>& samples, std::size_t begin) {
  std::size_t end = begin;
  while (end < samples.size() && samples[end].id.prompt == samples[begin].id.prompt) ++end;
  return end;
}

SampleFigure SampleFigure::of(std::vector<float> Sample::*list) {
  return {[list](const Sample& s) { return s.*list; },
          [list](Sample& s, std::vector<float> values) { s.*list = std::move(values); }};
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

std::size_t SampleSet::place_of(const ResponseId& id) const {
  const auto at = std::ranges::lower_bound(here_, id, {}, &Sample::id);
  TAPER_EXPECT(at != here_.end() && at->id == id);
  return static_cast<std::size_t>(at - here_.begin());
}

void SampleSet::set_rows() {
  rows_.clear();
  for (const Sample& s : here_) {
    const auto row = std::ranges::lower_bound(all_, s.id, {}, &SampleSummary::id);
    rows_.push_back(static_cast<int>(row - all_.begin()));
  }
}

std::vector<int> SampleSet::holders_of(int row) const {
  if (replica_.empty()) return {all_[row].holder};
  std::vector<int> ranks(static_cast<std::size_t>(grid_.tp));
  std::iota(ranks.begin(), ranks.end(), replica_[row] * grid_.tp);
  return ranks;
}

void SampleSet::move_to(const RankGrid& grid, const std::vector<int>& replica) {
  TAPER_EXPECT(std::ssize(replica) == size());
  TAPER_EXPECT(grid.ranks() == ranks());
  if (group_ == nullptr || (grid == grid_ && replica == replica_)) return;
  std::vector<bool> speaks;
  for (std::size_t k = 0; k < here_.size(); ++k) speaks.push_back(speaks_for(k));
  grid_ = grid;
  replica_ = replica;
  std::vector<Sample> come;
  exchange(
      *group_, here_.size(),
      [&](std::size_t k, Outbox& out) {
        if (speaks[k]) add(out, holders_of(rows_[k]), here_[k]);
        here_[k] = Sample();
      },
      [&](ByteReader& in) { unpack(in, come.emplace_back()); });
  std::ranges::sort(come, {}, &Sample::id);
  here_ = std::move(come);
  for (std::size_t row = 0; row < all_.size(); ++row) all_[row].holder = replica[row] * grid.tp;
  set_rows();
}

SampleSet SampleSet::copy_to(const RankBlock& block, const Group* its) const {
  TAPER_EXPECT((its != nullptr) == block.has(rank()));
  const auto place = [&](int row) {  // in the block
    return static_cast<int>(std::int64_t{row} * block.count / size());
  };
  SampleSet copy;
  const auto keep = [&](Sample sample) { copy.here_.push_back(std::move(sample)); };
  if (group_ == nullptr) {
    for (const Sample& sample : here_) keep(sample);
  } else {
    exchange(
        *group_, here_.size(),
        [&](std::size_t k, Outbox& out) {
          if (speaks_for(k)) add(out, {block.first + place(rows_[k])}, here_[k]);
        },
        [&](ByteReader& in) {
          Sample sample;
          unpack(in, sample);
          keep(std::move(sample));
        });
  }
  if (its == nullptr) return copy;
  std::ranges::sort(copy.here_, {}, &Sample::id);
  copy.group_ = its;
  copy.all_ = all_;
  for (std::size_t row = 0; row < all_.size(); ++row)
    copy.all_[row].holder = place(static_cast<int>(row));
  copy.set_rows();
  return copy;
}

void SampleSet::take(const SampleSet& copy, const SampleFigure& figure) {
  const auto place = [&](int row) { return std::ranges::lower_bound(rows_, row) - rows_.begin(); };
  if (group_ == nullptr) {
    for (std::size_t k = 0; k < copy.here_.size(); ++k)
      figure.set(here_[place(copy.rows_[k])], figure.get(copy.here_[k]));
    return;
  }
  exchange(
      *group_, copy.here_.size(),
      [&](std::size_t k, Outbox& out) {
        if (!copy.speaks_for(k)) return;
        const std::vector<float> values = figure.get(copy.here_[k]);
        for (const int rank : holders_of(copy.rows_[k])) {
          ByteWriter to(out[static_cast<std::size_t>(rank)]);
          to.value(copy.rows_[k]);
          to.list(values);
        }
      },
      [&](ByteReader& in) {
        const int row = in.value<int>();
        std::vector<float> values;
        in.list(values);
        figure.set(here_[place(row)], std::move(values));
      });
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

void SampleSet::drop_copies() {
  std::vector<Sample> kept;
  for (std::size_t k = 0; k < here_.size(); ++k)
    if (speaks_for(k)) kept.push_back(std::move(here_[k]));
  here_ = std::move(kept);
  replica_.clear();
  set_rows();
}

SampleSet SampleSet::extract(const std::vector<bool>& marked) {
  TAPER_EXPECT(std::ssize(marked) == size());
  drop_copies();
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
  set_rows();
  taken.set_rows();
  return taken;
}

void SampleSet::append(SampleSet&& more) {
  if (empty()) group_ = more.group_;
  TAPER_EXPECT(group_ == more.group_);
  TAPER_EXPECT(empty() || more.empty() || all_.back().id < more.all_.front().id);
  drop_copies();
  more.drop_copies();
  std::move(more.all_.begin(), more.all_.end(), std::back_inserter(all_));
  std::move(more.here_.begin(), more.here_.end(), std::back_inserter(here_));
  set_rows();
}

void share_out(SampleSet& samples, const RankGrid& grid,
               const std::function<int(const SampleSummary&)>& work) {
  std::vector<int> sizes;
  for (const SampleSummary& s : samples.all()) sizes.push_back(work(s));
  samples.move_to(grid, assign_replicas(sizes, grid.dp));
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
