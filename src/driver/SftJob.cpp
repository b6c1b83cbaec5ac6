// SPDX-License-Identifier: Apache-2.0
#include "driver/SftJob.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Random.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "driver/SaveModel.hpp"
#include "rl/MicroBatch.hpp"

namespace taper {
namespace {

TrainPassOptions pass_options(const SftOptions& o) {
  TrainPassOptions pass;
  pass.max_rows = o.training.max_tokens;
  pass.max_sequences = 512;
  pass.checkpointing = o.training.checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  return pass;
}

}  // namespace

SftJob::SftJob(const SftOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      files_(options.model.directory, "Model/Directory"),
      pass_options_(pass_options(options)),
      model_(files_, ranks,
             {options.model.type, options.training.tp, options.training.tp, pass_options_,
              options.adamw}),
      mix_(TaskMix::from_name(options.task)) {
  TAPER_VALIDATE(!files_.config.eos_ids.empty(),
                 path_text(files_.directory / "config.json")
                     << " has no eos_token_id (each example ends with it); add it");
  files_.require_tokenizer("examples are texts");
  model_.plan(plan_);
}

std::vector<SftJob::Example> SftJob::next_batch(std::uint64_t& next) const {
  constexpr int kMostLeftOut = 1000;  // in a row; the tasks' lengths vary by far less

  std::vector<Example> batch;
  const std::int32_t eos = files_.config.eos_ids.front();
  int left_out = 0, shortest = 0;
  for (int tokens = 0; tokens < options_.batch_tokens; ++next) {
    const SftExample text =
        make_sft_example(mix_, options_.seed, next, {options_.direct_fraction, options_.slip_rate});
    const auto prompt = files_.tokenizer().encode(text.prompt, AddSpecial::kYes);
    const auto response = files_.tokenizer().encode(text.response, AddSpecial::kNo);
    Example e{{prompt.begin(), prompt.end()}, {response.begin(), response.end()}};
    e.response.push_back(eos);
    if (e.length() > std::min(pass_options_.max_rows, files_.config.max_positions)) {
      shortest = left_out++ == 0 ? e.length() : std::min(shortest, e.length());
      TAPER_VALIDATE(left_out < kMostLeftOut, "Training/Max Tokens is "
                                                  << pass_options_.max_rows << " and the context "
                                                  << files_.config.max_positions
                                                  << " (the shortest of many examples has "
                                                  << shortest << " tokens); raise it");
      continue;
    }
    left_out = 0;
    tokens += e.length();
    batch.push_back(std::move(e));
  }
  return batch;
}

double SftJob::step(const std::vector<Example>& batch, double& grad_norm) {
  std::int64_t tokens = 0;
  std::vector<int> lengths;
  for (const Example& e : batch) {
    tokens += static_cast<std::int64_t>(e.response.size());
    lengths.push_back(e.length() - 1);
  }
  const auto mine = assign_samples(lengths, model_.dp_group().size(), model_.dp_group().rank());
  std::vector<int> my_lengths;
  my_lengths.reserve(mine.size());
  for (const int i : mine) my_lengths.push_back(lengths[i]);
  const HeadOptions head{files_.valid_ids(), 1.0f};
  const FloatVector gradient = model_.gradients().all();
  std::fill_n(gradient.data(), gradient.extent(0), 0.0f);
  double loss = 0;
  for (const auto& part :
       cut_micro_batches(my_lengths, pass_options_.max_rows, pass_options_.max_sequences)) {
    PackedSamples packed;
    for (const int b : part) packed.add(batch[mine[b]].prompt, batch[mine[b]].response);
    const TokenSlope slope{-1.0f / static_cast<float>(tokens), 0.0f};
    const auto add_loss = [&](std::size_t, float log_prob, float) {
      loss -= log_prob;
      return slope;
    };
    const auto& parallel = model_.train_parallel();
    model_.pass().forward(ranks_.exec, model_.train_view(), parallel, packed.sequences);
    model_.pass().backward(ranks_.exec, model_.train_view(), parallel, packed.rows, packed.targets,
                           head, add_loss, model_.gradients());
  }
  std::vector<double> total{loss};
  all_reduce_ordered_sum(model_.dp_group(), total);
  const double rate = learning_rate(options_.schedule, model_.optimizer().steps());
  grad_norm = model_.optimizer().step(ranks_.exec, model_.gradients(), rate).grad_norm;
  model_.publish();
  return total.front() / static_cast<double>(tokens);
}

// Normal weights of deviation 0.02, scaled down where a layer adds to the residual stream; norms
// are one. A pure function of seed and piece, so the same for any number of ranks.
void SftJob::start_from_random() {
  const CounterRandom random(options_.seed);
  const ParamTable& table = files_.table;
  const double residual = 1.0 / std::sqrt(2.0 * table.config().layers);
  auto& optimizer = model_.optimizer();
  for (const auto& piece : optimizer.owned()) {
    float* values = optimizer.master().data() + (piece.offset - optimizer.begin());
    const int index = table.tensor_of_piece(piece.id), unit = piece.id - table.first_piece(index);
    const ParamTensor& tensor = table.tensors()[index];
    const bool adds = tensor.role == ParamRole::kOutput || tensor.role == ParamRole::kDown;
    for (std::int64_t i = 0; i < piece.size; ++i) {
      const RandomKey key{RandomPurpose::kInit,          0, static_cast<std::uint64_t>(piece.id), 0,
                          static_cast<std::uint64_t>(i), 0};
      const bool norm = tensor.kind == ShardKind::kReplicated;
      const bool padding = table.is_padding(index, unit, static_cast<int>(i / tensor.columns));
      const double scale = padding ? 0.0 : 0.02 * (adds ? residual : 1.0);
      values[i] = norm ? 1.0f : static_cast<float>(scale * random.normal(key));
    }
  }
  model_.publish();
}

void SftJob::examine() const {
  require_memory(ranks_, plan_,
                 "lower Training/Max Tokens or set Training/Activation Checkpointing");
  if (!options_.from_scratch) HuggingFaceReader(files_.directory, files_.table);
}

void SftJob::run() {
  examine();
  Arena arena(plan_);
  model_.create(arena,
                files_.rope_table(std::min(pass_options_.max_rows, files_.config.max_positions)));
  options_.from_scratch ? start_from_random() : model_.load_masters();
  ranks_.progress.set_phase("sft");
  std::uint64_t next = 0;
  Timer timer;
  std::int64_t tokens = 0;
  for (std::int64_t s = 1; s <= options_.steps; ++s) {
    ranks_.progress.set_step(s);
    const auto batch = next_batch(next);
    for (const Example& e : batch) tokens += e.length();
    double grad_norm = 0;
    const double loss = step(batch, grad_norm);
    if (s % 20 == 0 || s == 1 || s == options_.steps) {
      char line[160];
      std::snprintf(line, sizeof line,
                    "step %6lld / %lld   loss %.4f   grad norm %.3f   %.0f tokens/s of all ranks",
                    static_cast<long long>(s), static_cast<long long>(options_.steps), loss,
                    grad_norm, static_cast<double>(tokens) / timer.seconds());
      TAPER_INFO(line);
    }
  }
  save_model(ranks_, files_, model_, options_.output);
  TAPER_INFO("completed: " << count_text(options_.steps, "step") << ", results in "
                           << path_text(options_.output));
}

}  // namespace taper
