// SPDX-License-Identifier: Apache-2.0
#include "draft/DraftModel.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace taper {

DraftModel::DraftModel(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory,
                       Arena& arena, MemoryPhase phase, ConstFloatMatrix rope_table,
                       float* window_memory)
    : runner_(exec, setup, memory, arena, phase, rope_table),
      window_memory_(window_memory),
      blocks_(setup.options.kv_blocks) {}

void DraftModel::rebind(const EngineSetup& setup, const LayerWindows* windows) {
  runner_.rebind(setup);
  windows_ = windows;
  blocks_ = BlockManager(setup.options.kv_blocks);
  cached_.clear();
}

void DraftModel::keep(std::span<const DraftAsk> asks) {
  std::set<ResponseId> wanted;
  for (const DraftAsk& ask : asks) wanted.insert(ask.sequence->id);
  for (auto at = cached_.begin(); at != cached_.end();) {
    if (wanted.contains(at->first)) {
      ++at;
    } else {
      release(at->second);
      at = cached_.erase(at);
    }
  }
}

void DraftModel::release(Cached& cached) {
  for (const std::int32_t block : cached.blocks) blocks_.release(block);
  cached = {};
}

// Blocks for all tokens, and no more.
bool DraftModel::reserve(Cached& cached) {
  const int size = runner_.options().scheduler.block_size;
  const auto need = (cached.tokens.size() + size - 1) / size;
  while (cached.blocks.size() > need) {
    blocks_.release(cached.blocks.back());
    cached.blocks.pop_back();
  }
  if (static_cast<int>(need - cached.blocks.size()) > blocks_.free()) return false;
  while (cached.blocks.size() < need) cached.blocks.push_back(blocks_.allocate());
  return true;
}

// Of a sequence that is new: the whole blocks of its prompt that another sample has, or gets in
// this draw() before this one. Their positions are never written again.
void DraftModel::share_prompt(const Sequence& sequence, Cached& cached) {
  const auto size = static_cast<std::size_t>(runner_.options().scheduler.block_size);
  const auto most = static_cast<std::size_t>(
      std::min(sequence.prompt_length, static_cast<int>(sequence.tokens.size()) - 1));
  const Cached* source = &cached;
  for (auto at = cached_.lower_bound({sequence.id.prompt, 0});
       at != cached_.end() && at->first.prompt == sequence.id.prompt; ++at)
    if (at->second.exact > source->exact) source = &at->second;
  const std::size_t count = std::min(source->exact, most) / size;
  for (std::size_t i = 0; i < count; ++i) {
    blocks_.share(source->blocks[i]);
    cached.blocks.push_back(source->blocks[i]);
  }
  cached.tokens.assign(sequence.tokens.begin(), sequence.tokens.begin() + count * size);
  cached.sure = cached.exact = cached.tokens.size();
}

// Finds what the cache has of a context: tokens of the sequence stay, those of drafts may have been
// wrong, and a new draft begins with what is exact. At least the last position is computed again,
// for what comes after it. Nothing if there is no room.
std::optional<DraftModel::Reading> DraftModel::open(std::size_t number,
                                                    const DraftContext& context) {
  const Sequence& s = *context.sequence;
  Cached& cached = cached_[s.id];
  const std::size_t own = s.tokens.size(), length = own + context.draft.size();
  const auto token = [&](std::size_t i) { return i < own ? s.tokens[i] : context.draft[i - own]; };
  if (cached.tokens.empty()) share_prompt(s, cached);
  std::size_t most = std::min(cached.tokens.size(), length - 1);
  if (context.draft.empty()) most = std::min(most, cached.exact);
  std::size_t known = std::min(cached.sure, most);
  while (known < most && cached.tokens[known] == token(known)) ++known;
  cached.exact = std::min(cached.exact, known);
  // Several positions are read exactly, on each rank by itself: over what all ranks have.
  if (windows_ != nullptr && length - known > 1) known = cached.exact;
  cached.tokens.resize(known);
  for (std::size_t i = known; i < length; ++i) cached.tokens.push_back(token(i));
  cached.sure = own;
  if (!reserve(cached)) {
    release(cached);
    return std::nullopt;
  }
  Reading reading{number, &cached, static_cast<int>(known)};
  reading.is_exact = windows_ == nullptr || context.draft.empty() || reading.pending() > 1;
  if (reading.is_exact && cached.exact == known) cached.exact = length;
  return reading;
}

std::vector<DrawnToken> DraftModel::draw(std::span<const DraftContext> contexts,
                                         const SamplingOptions& sampling) {
  std::vector<DrawnToken> drawn(contexts.size(), DrawnToken{-1});
  std::vector<Reading> exact, approximate;
  rows_read_ = 0;
  for (std::size_t i = 0; i < contexts.size(); ++i)
    if (const auto reading = open(i, contexts[i])) {
      rows_read_ += reading->pending();
      (reading->is_exact ? exact : approximate).push_back(*reading);
    }
  while (!exact.empty()) read(exact, nullptr, contexts, sampling, drawn);
  while (!approximate.empty()) read(approximate, windows_, contexts, sampling, drawn);
  return drawn;
}

// One pass over as many rows as it may have; who has come to the end of its context leaves.
void DraftModel::read(std::vector<Reading>& readings, const LayerWindows* windows,
                      std::span<const DraftContext> contexts, const SamplingOptions& sampling,
                      std::vector<DrawnToken>& drawn) {
  int rows = runner_.options().scheduler.max_step_rows, end = 0;
  std::vector<Chunk> chunks;
  std::vector<DrawRow> draw_rows;
  std::vector<std::size_t> done;
  for (Reading& r : readings) {
    const int count = std::min(r.pending(), rows);
    if (count == 0) break;
    Cached& cached = *r.cached;
    const std::span<const std::int32_t> tokens = cached.tokens;
    chunks.push_back({cached.blocks.data(), r.computed, tokens.subspan(r.computed, count)});
    r.computed += count;
    rows -= count;
    end += count;
    if (r.pending() > 0) break;
    draw_rows.push_back({end - 1, contexts[r.context].sequence->id, 1, tokens});
    done.push_back(r.context);
  }
  const FloatMatrix hidden = windows == nullptr ? runner_.forward(chunks)
                                                : runner_.forward(chunks, *windows, window_memory_);
  StepExchange exchange(runner_.parallel().group(), 0);
  const auto tokens = runner_.draw(draw_rows, hidden, sampling, exchange);
  if (tokens.empty()) runner_.exec().fence();
  for (std::size_t i = 0; i < done.size(); ++i) drawn[done[i]] = tokens[i];
  std::erase_if(readings, [](const Reading& r) { return r.pending() == 0; });
}

}  // namespace taper
