// SPDX-License-Identifier: Apache-2.0
//
// The part of a fine-tuning job before its first step.
#include <cmath>
#include <optional>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Random.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "driver/ConfigChanges.hpp"
#include "driver/SftJob.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

TrainPassOptions pass_options(const SftOptions& o) {
  TrainPassOptions pass;
  pass.max_rows = o.training.max_tokens;
  pass.max_sequences = 512;
  pass.checkpointing = o.training.checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  return pass;
}

ModelFiles open_model(const SftOptions& o) {
  ModelFiles files(o.model.directory, "Model/Directory");
  TAPER_VALIDATE(!files.config.eos_ids.empty(),
                 path_text(files.directory / "config.json")
                     << " has no eos_token_id (each example ends with it); add it");
  if (o.data.files.empty()) files.require_tokenizer("examples are texts");
  return files;
}

// Throws Error where the checkpoint was made with other examples: its position means nothing here.
void require_same_examples(const fs::path& checkpoint, const StateInfo& state,
                           const SftSource& source) {
  TAPER_VALIDATE(state.data.size() == 2, "the checkpoint "
                                             << path_text(checkpoint)
                                             << " was not made by taper sft; use --resume none");
  TAPER_VALIDATE(static_cast<std::uint64_t>(state.data[1]) == source.fingerprint(),
                 "the checkpoint " << path_text(checkpoint)
                                   << " was made with other examples (Data/Files, Data/Task, or "
                                      "what decides how they are read, have changed); put them "
                                      "back, or start over with --resume none");
}

}  // namespace

SftJob::SftJob(const SftOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      files_(open_model(options)),
      pass_options_(pass_options(options)),
      model_(files_, ranks,
             {options.model.type, options.training.tp, options.training.tp, pass_options_,
              options.adamw}),
      source_(options, files_, pass_options_.max_rows),
      checkpoints_(fs::path(options.run_path()) / "checkpoints", options.checkpoint.keep) {
  require_equal(ranks, "the examples", std::to_string(source_.fingerprint()));
  model_.plan(plan_);
}

RunStart SftJob::examine(const ResumePoint& from, CheckpointCheck check) const {
  require_memory(ranks_, plan_,
                 "lower Training/Max Tokens or set Training/Activation Checkpointing");
  RunStart start = find_run_start(from, options_.seed, files_, ranks_, check);
  if (start.is_afresh() && !options_.from_scratch)
    HuggingFaceReader(files_.directory, files_.table);
  from_rank_0(ranks_, [&] {
    if (start.is_afresh()) return std::string();
    require_same_examples(start.checkpoint, start.state, source_);
    IterationLog::require_readable(options_.run_path());
    return std::string();
  });
  return start;
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

// Weights and position: of a checkpoint, of the model directory, or drawn.
void SftJob::restore(const ResumePoint& from) {
  std::optional<StateInfo> state;
  if (!from.checkpoint.empty())
    state = CheckpointStore::load(from.checkpoint, ranks_, files_, model_);
  else if (!from.store.empty())
    state =
        CheckpointStore(from.store, options_.checkpoint.keep).load_newest(ranks_, files_, model_);
  if (!state) {
    options_.from_scratch ? start_from_random() : model_.load_masters();
    return;
  }
  // Of the one that was loaded, which need not be the one that examine() saw.
  const fs::path& place = from.checkpoint.empty() ? from.store : from.checkpoint;
  require_same_seed(place, state->seed, options_.seed);
  require_same_examples(place, *state, source_);
  done_ = saved_ = state->iteration;
  next_ = static_cast<std::uint64_t>(state->data[0]);
  for (const auto& change : config_changes(state->config, config_))
    TAPER_INFO("differs from the checkpoint's run file: " << change);
  TAPER_INFO("resuming after step " << done_);
}

void SftJob::start(const ResumePoint& from) {
  ranks_.progress.set_phase("start");
  examine(from, CheckpointCheck::kHead);
  const fs::path folder = options_.run_path();
  if (ranks_.rank() == 0) {
    fs::create_directories(folder);
    checkpoints_.remove_unfinished();
  }
  barrier(ranks_.world());  // the others read checkpoints only now
  Arena& arena = *(arena_ = std::make_unique<Arena>(plan_));
  model_.create(arena,
                files_.rope_table(std::min(pass_options_.max_rows, files_.config.max_positions)));
  restore(from);
  steps_ = done_ + source_.steps_left(next_, done_);
  if (ranks_.rank() != 0) return;
  if (source_.examples() > 0)
    TAPER_INFO(count_text(source_.examples(), "example")
               << ", " << source_.validation().size() << " held out; "
               << count_text(steps_ - done_, "step") << " to go");
  checkpoints_.remove_after(done_);
  log_ = std::make_unique<IterationLog>(folder, config_, ranks_.size(), done_);
  status_ = std::make_unique<StatusFile>(folder, steps_);
  status_->write(RunState::kRunning, done_);
}

}  // namespace taper
