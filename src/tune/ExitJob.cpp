// SPDX-License-Identifier: Apache-2.0
#include "tune/ExitJob.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/SaveModel.hpp"
#include "checkpoint/WriteExits.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "rl/MicroBatch.hpp"
#include "session/MemoryCheck.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

// Rows that a rank collects before it learns from them.
constexpr int kCapacity = 4096;

}  // namespace

ExitJob::ExitJob(const ExitOptions& options, ModelFiles& files, const ScoreInput& responses,
                 const std::filesystem::path& output, const Ranks& ranks)
    : options_(options),
      files_(files),
      responses_(responses),
      output_(output),
      ranks_(ranks),
      model_("model", files, ranks, options.tp) {
  ExitFiles::require_layers(options.layers, files, "--layers");
}

std::vector<std::int32_t> ExitJob::frequent_ids() const {
  std::map<std::int32_t, std::int64_t> counts;
  for (std::size_t i = 0; i < responses_.sequences.size(); ++i)
    for (std::size_t k = prompt_length(i); k < responses_.sequences[i].size(); ++k)
      ++counts[responses_.sequences[i][k]];
  std::vector<std::int32_t> ids;
  for (const auto& [id, count] : counts) ids.push_back(id);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return counts.at(a) > counts.at(b); });
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(options_.vocabulary)));
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Of a text without a prompt, the first token is one.
std::size_t ExitJob::prompt_length(std::size_t sequence) const {
  return static_cast<std::size_t>(std::max(1, responses_.prompt_lengths[sequence]));
}

double ExitJob::run() {
  ranks_.progress.set_phase("exits");
  const std::vector<std::int32_t> ids = frequent_ids();
  TAPER_VALIDATE(!ids.empty(),
                 "the responses have no tokens after the prompts (exits learn from them); give "
                 "those of taper generate");
  const std::filesystem::path target = without_end_slash(output_);
  const std::filesystem::path aside = target.string() + ".making";
  AsideDirectory making(ranks_.rank() == 0 ? aside : "");
  on_rank_0(ranks_, [&] { write_exits(files_, options_.layers, ids, aside); });
  const ExitFiles made(aside, "--output", files_);
  std::size_t longest = 1;
  for (const auto& s : responses_.sequences) longest = std::max(longest, s.size());
  MemoryPlan plan;
  TrainPassOptions pass_options;
  pass_options.max_rows = std::max(options_.max_tokens, static_cast<int>(longest));
  pass_options.precision = precision(ranks_.exec);
  pass_options.owner.phase = plan.phase("training");
  TrainedExits exits(made, ranks_,
                     {options_.type,
                      {.weight_decay = 0.0},
                      {{.peak = options_.rate}, 0, options_.temperature, kCapacity},
                      pass_options.owner.phase});
  model_.add_memory(plan, options_.type);
  TrainPass::add_memory(plan, files_.table, model_.parallel(), pass_options);
  exits.add_memory(plan);
  TAPER_INFO("memory of rank 0\n" << plan.table());
  require_memory(ranks_, plan, "lower --max-tokens");
  const std::unique_ptr<Arena> memory = make_arena(ranks_, plan);
  Arena& arena = *memory;
  model_.load(options_.type, arena);
  TrainPass pass(files_.table, model_.parallel(), pass_options, arena,
                 files_.rope_table(static_cast<int>(longest)));
  exits.create(arena);
  const PassContext context{ranks_.exec, model_.view(), model_.parallel(),
                            pass,        pass_options,  {files_.valid_ids(), 1.0f}};
  const double loss = learn(context, exits);
  auto head = made.heads().begin();
  for (const TrainingModel& model : exits.models()) {
    save_model(*head, model, head->directory);
    ++head;
  }
  on_rank_0(ranks_, [&] { making.rename_to(target); });
  return loss;
}

// Each rank reads its share of the responses in an order of its own; all learn together.
double ExitJob::learn(const PassContext& c, TrainedExits& exits) {
  const int tp = c.parallel.group().size();
  std::vector<int> lengths, numbers;
  for (std::size_t i = 0; i < responses_.sequences.size(); ++i) {
    const auto length = static_cast<int>(responses_.sequences[i].size());
    if (length <= static_cast<int>(prompt_length(i))) continue;
    lengths.push_back(length - 1);
    numbers.push_back(static_cast<int>(i));
  }
  std::deque<std::vector<int>> batches;
  for (int pass = 0; pass < options_.passes; ++pass)
    for (auto& batch : micro_batches_of(lengths, ranks_.size() / tp, ranks_.rank() / tp, c.options))
      batches.push_back(std::move(batch));
  std::vector<double> losses;
  for (std::vector<std::int64_t> left{1}; left.front() > 0;) {
    ranks_.progress.set_step(std::ssize(losses));
    exits.trainer().begin(0);
    while (!batches.empty() && !exits.trainer().is_full()) {
      PackedSamples packed;
      for (const int k : batches.front()) {
        const auto i = static_cast<std::size_t>(numbers[k]);
        const std::span<const std::int32_t> all(responses_.sequences[i]);
        packed.add(all.first(prompt_length(i)), all.subspan(prompt_length(i)));
      }
      batches.pop_front();
      c.pass.forward(c.exec, c.view, c.parallel, packed.sequences);
      exits.trainer().collect(c.pass, packed, c.parallel.group());
    }
    losses.push_back(exits.trainer().learn().loss);
    TAPER_INFO(format_text("round %d: loss %.3f nat per token", static_cast<int>(losses.size()),
                           losses.back()));
    left = {std::ssize(batches)};
    all_reduce_max(ranks_.world(), left);
  }
  const std::size_t last = std::max<std::size_t>(1, losses.size() / 4);
  return std::accumulate(losses.end() - static_cast<std::ptrdiff_t>(last), losses.end(), 0.0) /
         static_cast<double>(last);
}

}  // namespace taper
