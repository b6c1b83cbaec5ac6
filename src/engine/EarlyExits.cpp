// SPDX-License-Identifier: Apache-2.0
#include "engine/EarlyExits.hpp"

#include <algorithm>
#include <numeric>

#include "base/Error.hpp"
#include "kernels/copy.hpp"

namespace taper {
namespace {

// Of 0.7: an exit's own probability from which on later exits are not asked.
constexpr float kSure = -0.357f;  // the range that the paper found good ends at 0.85

}  // namespace

std::int64_t EarlyExits::floats(const ParamTable& head, const ModelParallel& parallel, int rows,
                                int logit_rows) {
  return aligned_floats(std::int64_t{rows} * head.config().hidden) +
         TokenHead::floats(head, parallel, logit_rows);
}

EarlyExits::EarlyExits(ModelRunner& runner, std::vector<ExitHead> heads, int rows, int logit_rows,
                       float* memory)
    : runner_(runner),
      heads_(std::move(heads)),
      logit_rows_(static_cast<std::size_t>(logit_rows)),
      free_rows_(static_cast<std::size_t>(rows)) {
  TAPER_EXPECT(!heads_.empty());
  const int hidden = heads_.front().view->table().config().hidden;
  streams_ = make_matrix(memory, rows, hidden);
  memory += aligned_floats(std::int64_t{rows} * hidden);
  std::iota(free_rows_.begin(), free_rows_.end(), 0);
  // The heads work one after the other, and are of one shape.
  for (const ExitHead& head : heads_)
    token_heads_.emplace_back(head.view->table(), *head.parallel, logit_rows, memory);
}

void EarlyExits::keep(std::span<const DraftAsk> asks) {
  asked_.clear();
  for (const DraftAsk& ask : asks) asked_.push_back(ask.sequence);
}

EarlyExits::Begun& EarlyExits::begun(const Sequence& sequence) {
  Begun& b = begun_[&sequence];
  b.sequence = &sequence;
  return b;
}

// What is computed of other tokens is let go. False if there is no room for all of them.
bool EarlyExits::set_tokens(Begun& w, std::span<const std::int32_t> tokens) {
  const std::size_t common =
      std::mismatch(w.tokens.begin(), w.tokens.end(), tokens.begin(), tokens.end()).first -
      w.tokens.begin();
  free_rows_.insert(free_rows_.end(), w.rows.begin() + common, w.rows.end());
  w.rows.resize(common);
  w.exits.resize(common);
  w.tokens.assign(tokens.begin(), tokens.end());
  const bool fits = tokens.size() - common <= free_rows_.size();
  if (!fits) w.tokens.resize(common);
  while (w.rows.size() < w.tokens.size()) {
    w.rows.push_back(free_rows_.back());
    free_rows_.pop_back();
    w.exits.push_back(0);
  }
  return fits;
}

// Computes all positions of these sequences up to the exit. Those that have come to an earlier exit
// are the last ones of a sequence.
void EarlyExits::advance(std::span<Begun* const> sequences, int exit) {
  for (int at = 0; at < exit; ++at) {
    std::vector<Chunk> chunks;
    Staged<std::int32_t> rows;
    for (Begun* w : sequences) {
      const auto first = std::find(w->exits.begin(), w->exits.end(), at) - w->exits.begin();
      if (first == std::ssize(w->exits)) continue;
      chunks.push_back({w->sequence->blocks.data(), w->sequence->computed + static_cast<int>(first),
                        std::span(w->tokens).subspan(static_cast<std::size_t>(first))});
      rows.insert(rows.end(), w->rows.begin() + first, w->rows.end());
      std::fill(w->exits.begin() + first, w->exits.end(), at + 1);
    }
    if (chunks.empty()) continue;
    const Range layers{at == 0 ? 0 : heads_[at - 1].layers, heads_[at].layers};
    const FloatMatrix x = runner_.forward(chunks, layers, streams_, rows);
    scatter_rows(runner_.exec(), streams_, ConstFloatMatrix(x), staging_view(rows));
    // Ids and positions of this pass are read until then.
    runner_.exec().fence();
  }
}

// What the exit's head draws after the contexts `open`.
std::vector<DrawnToken> EarlyExits::look(int exit, std::span<const DraftContext> contexts,
                                         std::span<const std::size_t> open,
                                         const SamplingOptions& sampling) {
  const ExitHead& head = heads_[exit];
  const float temperature = sampling.temperature > 0.0f ? sampling.temperature : 1.0f;
  const int ids = static_cast<int>(head.ids.size());
  std::vector<DrawnToken> drawn;
  for (std::size_t done = 0; done < open.size(); done += logit_rows_) {
    std::vector<int> rows;
    std::vector<Draw> draws;
    for (const std::size_t i : open.subspan(done, std::min(logit_rows_, open.size() - done))) {
      const Sequence& s = *contexts[i].sequence;
      draws.push_back({static_cast<int>(rows.size()), s.id,
                       s.length() + static_cast<int>(contexts[i].draft.size())});
      rows.push_back(begun_.at(&s).rows.back());
    }
    const RowLogits logits =
        token_heads_[exit].logits(runner_.with_rounding(), *head.view, *head.parallel,
                                  ConstFloatMatrix(streams_), rows, {ids, temperature});
    StepExchange exchange(head.parallel->group(), 0);
    for (DrawnToken token :
         draw_tokens(runner_.exec(), *head.parallel, logits, ids, draws, sampling, exchange)) {
      token.id = head.ids[static_cast<std::size_t>(token.id)];
      drawn.push_back(token);
    }
  }
  return drawn;
}

std::vector<DrawnToken> EarlyExits::draw(std::span<const DraftContext> contexts,
                                         const SamplingOptions& sampling) {
  std::vector<DrawnToken> drawn(contexts.size(), DrawnToken{-1});
  std::vector<std::size_t> open;
  const int block = runner_.options().scheduler.block_size;
  rows_read_ = 0;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const Sequence& s = *contexts[i].sequence;
    std::vector<std::int32_t> tokens(s.tokens.begin() + s.computed, s.tokens.end());
    tokens.insert(tokens.end(), contexts[i].draft.begin(), contexts[i].draft.end());
    if (s.computed + std::ssize(tokens) > block * std::ssize(s.blocks)) continue;
    Begun& w = begun(s);
    if (!set_tokens(w, tokens)) continue;
    rows_read_ += static_cast<int>(std::count(w.exits.begin(), w.exits.end(), 0));
    open.push_back(i);
  }
  // The first layers of the others come with these, or their weights would be read once more.
  std::vector<Begun*> all;
  for (const Sequence* s : asked_) {
    Begun& b = begun(*s);
    if (b.tokens.empty()) set_tokens(b, std::span(s->tokens).subspan(s->computed));
    all.push_back(&b);
  }
  asked_.clear();
  if (!open.empty()) advance(all, 1);
  for (int exit = 0; exit < static_cast<int>(heads_.size()) && !open.empty(); ++exit) {
    std::vector<Begun*> sequences;
    for (const std::size_t i : open) sequences.push_back(&begun_.at(contexts[i].sequence));
    advance(sequences, exit + 1);
    const std::vector<DrawnToken> tokens = look(exit, contexts, open, sampling);
    std::vector<std::size_t> unsure;
    for (std::size_t k = 0; k < open.size(); ++k) {
      drawn[open[k]] = tokens[k];
      if (tokens[k].log_prob < kSure) unsure.push_back(open[k]);
    }
    open = std::move(unsure);
  }
  return drawn;
}

FloatMatrix EarlyExits::forward(std::span<const Work> work, std::span<const Chunk> chunks) {
  asked_.clear();
  if (begun_.empty()) return runner_.forward(chunks);
  // First what is no longer wanted, for there are rows for all that is.
  for (std::size_t i = 0; i < work.size(); ++i)
    if (const auto at = begun_.find(work[i].sequence); at != begun_.end()) {
      Begun& w = at->second;
      set_tokens(w, chunks[i].tokens.first(std::min(chunks[i].tokens.size(), w.tokens.size())));
    }
  std::vector<Begun*> sequences;
  for (std::size_t i = 0; i < work.size(); ++i) {
    Begun& w = begun(*work[i].sequence);
    [[maybe_unused]] const bool fits = set_tokens(w, chunks[i].tokens);
    TAPER_ENSURE(fits);
    sequences.push_back(&w);
  }
  advance(sequences, static_cast<int>(heads_.size()));
  std::vector<std::int32_t> rows;
  for (const Begun* w : sequences) rows.insert(rows.end(), w->rows.begin(), w->rows.end());
  const FloatMatrix hidden = runner_.forward(
      chunks, {heads_.back().layers, runner_.table().config().layers}, streams_, rows);
  free_rows_.insert(free_rows_.end(), rows.begin(), rows.end());
  begun_.clear();
  return hidden;
}

}  // namespace taper
