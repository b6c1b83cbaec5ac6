// SPDX-License-Identifier: Apache-2.0
//
// The samples of an iteration, spread over the ranks: none of them ever holds all.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "comm/DoublesOnly.hpp"
#include "comm/Group.hpp"
#include "rl/Sample.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

// What all ranks know of a sample: about a hundred bytes, whatever its length.
struct SampleSummary {
  ResponseId id;
  int holder = 0;  // rank of the group, the first of those that hold it
  int prompt_tokens = 0, response_tokens = 0, loss_tokens = 0;
  FinishReason finish = FinishReason::kEos;
  bool unscored = false;
  float score = 0.0f, unshaped_score = 0.0f, reward = 0.0f;
  std::vector<float> rewards;  // by component

  // As summaries go from rank to rank (base/Packing.hpp).
  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.holder, self.prompt_tokens, self.response_tokens,
                    self.loss_tokens, self.finish, self.unscored, self.score, self.unshaped_score,
                    self.reward, self.rewards);
  }

  int length() const { return prompt_tokens + response_tokens; }
};

// Where the samples of a prompt end that begin at `begin`.
std::size_t prompt_end(const std::vector<SampleSummary>& samples, std::size_t begin);

// Calls visit(begin, end) for each group.
template <class Visit>
void for_each_group(const std::vector<SampleSummary>& samples, const Visit& visit) {
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    end = prompt_end(samples, begin);
    visit(begin, end);
  }
}

// A list of numbers that a model adds to each sample.
struct SampleFigure {
  std::function<std::vector<float>(const Sample&)> get;
  std::function<void(Sample&, std::vector<float>)> set;

  // The whole of a member.
  static SampleFigure of(std::vector<float> Sample::*list);
};

// Samples of all ranks of a group, in the order of their ids. Each rank holds some of them whole
// (the ranks of a replica hold the same ones) and knows the summaries of all. Rows are indices into
// all().
class SampleSet {
 public:
  // Of this process alone.
  explicit SampleSet(std::vector<Sample> samples = {});
  // `mine` are those of this rank, which no other rank brings. The group must outlive the set.
  // Collective over `group`.
  SampleSet(const Group& group, std::vector<Sample> mine);

  // The same on all ranks.
  const std::vector<SampleSummary>& all() const { return all_; }
  std::int64_t size() const { return std::ssize(all_); }
  bool empty() const { return all_.empty(); }
  // Of all samples.
  std::int64_t response_tokens() const;
  // Ranks of the group.
  int ranks() const { return group_ == nullptr ? 1 : group_->size(); }

  // Those that this rank holds, ascending, and their rows. What is changed here must be changed
  // alike on all ranks that hold the sample.
  std::vector<Sample>& here() { return here_; }
  const std::vector<Sample>& here() const { return here_; }
  const std::vector<int>& rows() const { return rows_; }
  // The place in here() of a sample that this rank holds.
  std::size_t place_of(const ResponseId& id) const;
  // Whether this rank speaks for here()[k]: of the ranks that hold a sample one does.
  bool speaks_for(std::size_t k) const { return all_[rows_[k]].holder == rank(); }

  // Computes the summaries again, after samples have changed. Collective over the group.
  void summarize();

  // Brings the sample of each row to all ranks of replica[row] of the grid, and removes it from the
  // others. Collective over the group.
  void move_to(const RankGrid& grid, const std::vector<int>& replica);

  // The same samples on the ranks `block` of the group, whose own group is `its`: each on one of
  // them. Rows are those of this set. `its` is null on all other ranks, where the copy is empty.
  // Collective over the group.
  SampleSet copy_to(const RankBlock& block, const Group* its) const;
  // Takes a figure that a copy of these samples has got meanwhile, on each rank that holds a
  // sample. Collective over the group.
  void take(const SampleSet& copy, const SampleFigure& figure);

  // figures_of(k) of here()[k], a number or a struct of numbers: those of all samples by rows, the
  // same on all ranks. What is summed up from them in the order of rows has the same bits whoever
  // holds the samples. Collective over the group.
  template <class FiguresOf>
  auto gather(const FiguresOf& figures_of) const {
    using Figures = std::invoke_result_t<const FiguresOf&, std::size_t>;
    static_assert(std::is_trivially_copyable_v<Figures>);
    std::vector<Figures> mine, all(all_.size());
    for (std::size_t k = 0; k < here_.size(); ++k)
      if (speaks_for(k)) mine.push_back(figures_of(k));
    gather_bytes(std::as_writable_bytes(std::span(all)), std::as_bytes(std::span(mine)),
                 sizeof(Figures));
    return all;
  }

  // figures[k] of here()[k]: the sums of each member over all samples, in the order of rows.
  // Collective over the group.
  template <DoublesOnly Figures>
  Figures sum(std::span<const Figures> figures) const {
    std::array<double, sizeof(Figures) / sizeof(double)> sums{};
    for (const Figures& of_row : gather([&](std::size_t k) { return figures[k]; })) {
      const auto values = std::bit_cast<decltype(sums)>(of_row);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    }
    return std::bit_cast<Figures>(sums);
  }

  // Removes the samples whose rows are marked, and returns them; every rank passes the same marks.
  // From then on one rank alone holds each sample of both sets. Not collective.
  SampleSet extract(const std::vector<bool>& marked);
  // Adds samples of the same group, whose ids are all above these. From then on one rank alone
  // holds each sample. Not collective.
  void append(SampleSet&& more);

 private:
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  // The ranks that hold the sample of a row.
  std::vector<int> holders_of(int row) const;
  void set_rows();
  // Forgets where move_to() has put the samples: only those ranks keep one that speak for it.
  void drop_copies();
  // `size` bytes for each of all(), by rows; `mine` are those of the samples for which this rank
  // speaks. Collective over the group.
  void gather_bytes(std::span<std::byte> by_row, std::span<const std::byte> mine,
                    std::size_t size) const;

  const Group* group_ = nullptr;  // null: this process alone
  std::vector<SampleSummary> all_;
  std::vector<Sample> here_;
  std::vector<int> rows_;
  // Where the samples are since move_to(); no replicas: where they were made.
  RankGrid grid_;
  std::vector<int> replica_;
};

// Brings the samples to the replicas of the grid, about as much work to each: what that is of a
// sample, its tokens if nothing is said. Collective over the ranks of the samples.
void share_out(SampleSet& samples, const RankGrid& grid,
               const std::function<int(const SampleSummary&)>& work = &SampleSummary::length);

// The sum of term(k, t) over the tokens t of samples.here()[k] that carry a loss, on all ranks: by
// sample, then over samples in their order. Collective over the ranks of the samples.
double sum_over_tokens(const SampleSet& samples,
                       const std::function<double(std::size_t k, std::size_t t)>& term);

}  // namespace taper
