// SPDX-License-Identifier: Apache-2.0
#include "driver/Options_params.hpp"

#include <limits>

#include "driver/Preset.hpp"

namespace taper {
namespace {

// Longer than any job; finite times are counted in milliseconds.
constexpr double kMostSeconds = 86400.0;

void describe_model(param::Section& schema, ModelOptions& o) {
  auto s = schema.section("Model", "The model to train");
  s.text("Directory", o.directory,
         "Hugging Face directory: config.json, *.safetensors, tokenizer.json");
  s.choice("Weight Type", o.type, "Type of the forward weights; masters are always f32",
           {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}});
  s.check([&o] { return o.problems(); });
}

void describe_data(param::Section& schema, DataOptions& o) {
  auto s = schema.section("Data", "Prompts and how answers are judged");
  s.text("Task", o.task, "In-tree task where no prompt file is given: mix, sum, gcd or collatz");
  s.list("Prompts", o.prompts, "JSONL files of prompts with ground truths; none: the in-tree task");
  s.list("Weights", o.weights,
         "Shares of these files in training, in their order; none: each prompt alike");
  s.text("Evaluation Prompts", o.evaluation_prompts,
         "JSONL file of held-out prompts, for evaluations beside a prompt file");
  s.text("Chat Template", o.chat_template,
         "How messages become text: auto (the model's own, recognised) or a family");
  s.choice("Reward Rule", o.rule, "How a response is scored where there are no Rewards",
           named_reward_rules());
  s.check([&o] { return o.problems(); });
}

void describe_command(param::Section& s, CommandOptions& o) {
  s.list("Command", o.command, "Program and arguments of a worker that speaks JSON lines");
  s.integer("Workers", o.workers, "Workers on each rank that makes responses").between(1, 4096);
  s.number("Timeout", o.timeout, "Seconds that a worker may take for an answer")
      .above(0)
      .at_most(kMostSeconds);
  s.number("Start Timeout", o.start_timeout,
           "Seconds that the first answer of a new worker may take in addition")
      .between(0, kMostSeconds);
  s.integer("Retries", o.retries, "Further attempts for a response without a score")
      .between(0, 1000);
  s.choice("On Error", o.on_error, "What becomes of a response without a score after that",
           {{"fail", OnError::kFail}, {"zero", OnError::kZero}, {"drop", OnError::kDrop}});
  s.list("Components", o.components, "Names of figures in the answers that are recorded");
}

// The parameters of one reward: those of its kind.
void describe_reward(param::Section s, RewardOptions& o, const std::string& kind) {
  s.choice("Kind", o.kind, "What is judged, and how", named_reward_kinds());
  s.number("Weight", o.weight, "Factor of this reward in the score");
  if (kind == "format") {
    s.list("Markers", o.format.markers, "Texts that must stand in a response once, in this order");
    s.flag("Enclosing", o.format.enclosing,
           "Whether the response must begin with the first and end with the last marker");
  } else if (kind == "length") {
    s.integer("Target", o.length.target, "Tokens without a penalty").at_least(0);
    s.number("Per Token", o.length.per_token, "Penalty of each token above it").at_least(0);
    s.number("Lowest", o.length.lowest, "The reward does not fall below this").at_most(0);
  } else if (kind == "overlong") {
    s.integer("Limit", o.overlong.limit,
              "Tokens at which the penalty is the factor; 0: "
              "Rollout/Max New Tokens")
        .at_least(0);
    s.integer("Buffer", o.overlong.buffer, "Tokens before the limit over which it grows")
        .at_least(1);
    s.number("Factor", o.overlong.factor, "Penalty at the limit").at_least(0);
  } else if (kind == "repetition") {
    s.integer("N", o.repetition.n, "Tokens of an n-gram").between(1, 1000);
    s.number("Penalty", o.repetition.penalty, "Penalty of nothing but repetition").at_least(0);
  } else if (kind == "command") {
    describe_command(s, o.command);
  } else if (kind == "model") {
    s.text("Directory", o.model.directory,
           "Hugging Face directory of a reward model whose tokenizer is the policy's");
    s.integer("Tensor Parallel", o.model.tp, "Ranks per replica of it; 0: as in training")
        .at_least(0);
  }
  s.check([&o] { return o.problems(); });
}

void describe_rewards(param::Section& schema, std::deque<RewardOptions>& rewards) {
  schema.entries("Rewards",
                 "Rewards whose weighted sum is the score of a response, each a section under a "
                 "name of its own with its Kind (doc/rewards.md); none: Data/Reward Rule",
                 [&rewards](param::Section entry, const std::string& name, const auto& peek) {
                   rewards.emplace_back().name = name;
                   describe_reward(entry, rewards.back(), peek("Kind"));
                 });
}

void describe_rollout(param::Section& schema, RolloutOptions& o) {
  auto s = schema.section("Rollout", "How responses are generated");
  s.integer("Prompts", o.prompts, "Prompts per iteration").at_least(1);
  s.integer("Samples Per Prompt", o.samples,
            "Responses per prompt (a group); most estimators compare them, so one is too few")
      .at_least(1);
  s.integer("Max Prompt Tokens", o.max_prompt_tokens, "Longest prompt").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response").at_least(1);
  s.number("Temperature", o.temperature,
           "Softmax temperature; at 0 all samples of a prompt would be equal, their advantages 0")
      .above(0);
  s.number("Top P", o.top_p, "Nucleus sampling; 1 is off").above(0).at_most(1);
  s.integer("Top K", o.top_k, "Keep the k likeliest ids; 0 is off").at_least(0);
  s.number("Min P", o.min_p, "Keep ids of at least this share of the largest probability; 0 is off")
      .between(0, 1);
  s.number("Repetition Penalty", o.repetition_penalty,
           "Only 1 (off) in training: the update knows no penalty; evaluations may have one")
      .above(0);
  s.list("Stop Strings", o.stop_strings, "Texts that end a response");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica during generation; the smallest degree where the layout changes")
      .at_least(1);
  s.choice("Mode", o.mode,
           "Whether the layout changes during generation: never, only in words, or where it pays",
           {{"static", PolicyMode::kStatic},
            {"advise", PolicyMode::kAdvise},
            {"adaptive", PolicyMode::kAdaptive}});
  s.text("Profile", o.profile, "Latency profile of this model and machine, by taper profile");
  s.text("Layout", o.layout,
         "Layout at the start of each generation, TPxDP or degrees of groups (4+2+2); empty: by "
         "Tensor Parallel, or chosen from the profile");
  s.integer("Max Running", o.max_running,
            "Sequences in flight per replica; where the layout may change, per replica of the "
            "smallest groups, and in proportion in larger ones")
      .between(1, kMostRunning);
  s.integer("Step Rows", o.step_rows, "Tokens per step, decode and prefill together")
      .between(1, kMostStepRows);
  s.number("KV Memory MB", o.kv_memory_mb, "Largest KV cache per rank")
      .above(0)
      .at_most(kMostKvMemoryMb);
  s.check([&o] { return o.problems(); });
}

void describe_advantages(param::Section& s, AdvantageOptions& o) {
  s.choice("Estimator", o.estimator, "How rewards become advantages", named_estimators());
  s.choice("Advantage Normalization", o.normalization,
           "What advantages are divided by; default: as the estimator has it",
           named_normalizations());
  s.number("Gamma", o.gamma, "Discount of later rewards, for gae and reinforce++")
      .above(0)
      .at_most(1);
  s.number(
       "Lambda", o.lambda,
       "Of gae: how far rewards count instead of the critic's values; 0: only to the next token")
      .between(0, 1);
}

void describe_loss(param::Section& s, PolicyLossOptions& o) {
  s.choice("Policy Loss", o.kind, "Loss of a token", named_policy_losses());
  s.number("Clip Low", o.clip_low, "Probability ratios are clipped below 1 - this").at_least(0);
  s.number("Clip High", o.clip_high, "Probability ratios are clipped above 1 + this").at_least(0);
  s.number("Dual Clip", o.dual_clip,
           "Bound of the ppo loss for negative advantages, in multiples of them; 0 is off")
      .at_least(0);
  s.number("Entropy Coefficient", o.entropy_coef, "Weight of the entropy bonus").at_least(0);
  s.choice("Loss Aggregation", o.aggregation, "How token losses become one number",
           named_aggregations());
  s.number("Length Norm", o.length_norm,
           "Constant length of seq-mean-token-sum-norm; 0: Rollout/Max New Tokens")
      .at_least(0);
  s.check([&o] { return o.problems(); });
}

void describe_kl(param::Section& s, KlOptions& o) {
  s.number("KL Coefficient", o.coef, "Weight of the KL to the reference model; 0: no reference")
      .at_least(0);
  s.choice("KL Estimator", o.estimator, "Per-token KL estimate", named_kl_estimators());
  s.choice("KL In", o.place,
           "Where the KL counts: as a term of the loss, or in each token's reward",
           {{"loss", KlPlace::kLoss}, {"reward", KlPlace::kReward}});
  s.choice("KL Control", o.control, "Whether the coefficient of the KL in the reward adapts",
           {{"fixed", KlControl::kFixed}, {"adaptive", KlControl::kAdaptive}});
  s.number("KL Target", o.target, "KL that the adaptive control aims at").above(0);
  s.number("KL Horizon", o.horizon, "Samples over which the adaptive control acts").above(0);
  s.check([&o] { return o.problems(); });
}

void describe_correction(param::Section& s, RolloutCorrectionOptions& o) {
  s.choice("Importance Weights", o.weights,
           "Weight of the policy loss by the ratio of trained and drawing probability",
           named_importance_levels());
  s.number("Importance Cap", o.cap, "Largest importance weight").above(0);
  s.flag("Importance Normalization", o.normalize, "Divide importance weights by their mean");
  s.choice("Rejection", o.rejection, "Whose ratio leaves out tokens or sequences outside a band",
           named_rejection_levels());
  s.number("Rejection Low", o.low, "Lower end of the band").at_least(0);
  s.number("Rejection High", o.high, "Upper end of the band").above(0);
  s.check([&o] { return o.problems(); });
}

void describe_algorithm(param::Section& schema, RunOptions& o) {
  auto s = schema.section("Algorithm", "Advantages and the loss of the policy");
  s.choice("Preset", o.preset,
           "Named algorithm: sets what the run file does not set itself (doc/algorithms.md)",
           named_presets());
  describe_advantages(s, o.experience.advantage);
  s.check([&o] { return o.experience.advantage.problems(); });
  describe_loss(s, o.loss);
  s.flag("Mask Truncated", o.experience.mask_truncated,
         "Responses that ended at the length limit carry no loss");
  describe_kl(s, o.experience.kl);
  describe_correction(s, o.experience.correction);
  s.flag("Dynamic Sampling", o.dynamic.on,
         "Train only prompts whose samples differ in score, and generate until there are enough");
  s.integer("Max Rounds", o.dynamic.max_rounds,
            "Generations per iteration, at most; what is missing then are prompts whose samples do "
            "not differ")
      .at_least(1);
}

void describe_passes(param::Section& s, PassOptions& o) {
  s.integer("Tensor Parallel", o.tp, "Ranks per replica during training").at_least(1);
  s.integer("Max Tokens", o.max_tokens, "Tokens per micro-batch").at_least(1);
  s.flag("Activation Checkpointing", o.checkpointing,
         "Recompute layers in the backward pass instead of keeping them");
}

// Where a cosine may end: at a step that is given, or, with 0, at the end of the run.
enum class ScheduleEnd { kGiven, kOfRun };

void describe_schedule(param::Section& s, ScheduleOptions& lr, ScheduleEnd end,
                       const std::string& section) {
  s.number("Learning Rate", lr.peak, "Peak learning rate").at_least(0);
  s.choice(
      "Schedule", lr.kind,
      "After warm-up: constant, a cosine to Final Share, or (wsd) constant for Stable Share of the "
      "steps and then that cosine",
      {{"constant", ScheduleOptions::Kind::kConstant},
       {"cosine", ScheduleOptions::Kind::kCosine},
       {"wsd", ScheduleOptions::Kind::kWsd}});
  s.integer("Warmup Steps", lr.warmup_steps, "Optimizer steps of linear warm-up").at_least(0);
  s.integer("Total Steps", lr.total_steps,
            end == ScheduleEnd::kGiven
                ? "Optimizer steps at which the cosine ends"
                : "Optimizer steps at which the cosine ends; 0: with the run")
      .at_least(0);
  s.number("Final Share", lr.final_share, "Share of the peak at the end of the cosine")
      .between(0, 1);
  s.number("Stable Share", lr.stable_share,
           "Share of the steps between warm-up and Total Steps with the peak rate, for wsd")
      .between(0, 1);
  s.check([&lr, end, section] {
    ScheduleOptions checked = lr;
    if (end == ScheduleEnd::kOfRun && lr.total_steps == 0)
      checked.total_steps = std::numeric_limits<std::int64_t>::max();
    return checked.problems(section);
  });
}

void describe_optimizer(param::Section& schema, AdamWOptions& o, ScheduleOptions& lr,
                        ScheduleEnd end) {
  auto s = schema.section("Optimizer", "AdamW and its learning rate");
  describe_schedule(s, lr, end, "Optimizer");
  s.number("Beta1", o.beta1, "Decay of the first moment").at_least(0).below(1);
  s.number("Beta2", o.beta2, "Decay of the second moment").at_least(0).below(1);
  s.number("Epsilon", o.eps, "Added to the root of the second moment").above(0);
  s.number("Weight Decay", o.weight_decay, "Decoupled weight decay").at_least(0);
  s.number("Clip Norm", o.clip_norm, "Largest gradient norm; 0 is off").at_least(0);
  s.choice(
      "On Non Finite", o.on_non_finite, "What to do with a gradient that is not finite",
      {{"stop", AdamWOptions::OnNonFinite::kStop}, {"skip", AdamWOptions::OnNonFinite::kSkip}});
}

void describe_critic(param::Section& schema, CriticOptions& o) {
  auto s = schema.section("Critic", "The critic, where Algorithm/Estimator is gae");
  s.text("Model Directory", o.directory,
         "Hugging Face directory to start from: a reward model, or a language model, which gets a "
         "new head; empty: Model/Directory");
  describe_schedule(s, o.schedule, ScheduleEnd::kGiven, "Critic");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica of the critic; 0: as the policy in training")
      .at_least(0);
  s.integer("Mini Batches", o.mini_batches,
            "Optimizer steps per epoch over a rollout; 0: as the policy")
      .at_least(0);
  s.integer("Epochs", o.epochs, "Passes over a rollout; 0: as the policy").at_least(0);
  s.integer("Warmup Iterations", o.warmup,
            "Iterations at the start of the run in which the critic learns and the policy does not")
      .at_least(0);
  s.number("Value Clip", o.clip, "Values learn within this of those of the rollout; 0 is off")
      .at_least(0);
}

param::Section describe_run(param::Section& schema, std::uint64_t& seed, double& hang_seconds) {
  auto s = schema.section("Run", "The job as a whole");
  s.integer("Seed", seed, "Seed of all random numbers").at_least(0);
  s.number("Hang Seconds", hang_seconds,
           "A rank that waits longer for the others ends the job with a report")
      .above(0);
  return s;
}

void describe_deadline(param::Section& run, double& margin) {
  run.number("Deadline Margin", margin,
             "Seconds before the deadline (--deadline, TAPER_DEADLINE) at which to save and stop")
      .at_least(0);
}

void describe_evaluation_set(param::Section s, EvaluationSetOptions& o) {
  s.text("Prompt File", o.file, "JSONL file of held-out prompts; empty: held-out items of a task");
  s.text("Task", o.task, "In-tree task, where no file is given; empty: Data/Task");
  s.choice("Reward Rule", o.rule,
           "How responses to the file's prompts are judged; task: as Data/Reward Rule says",
           named_reward_rules());
  s.integer("Prompts", o.prompts, "The first so many; 0: all of a file").at_least(0);
  s.integer("Samples", o.samples, "Responses per prompt, the k of avg@k, pass@k and maj@k")
      .between(1, 65535);
  s.number("Temperature", o.temperature, "0 is greedy").at_least(0);
  s.number("Top P", o.top_p, "Nucleus sampling; 1 is off").above(0).at_most(1);
  s.integer("Top K", o.top_k, "Keep the k likeliest ids; 0 is off").at_least(0);
  s.number("Min P", o.min_p, "Keep ids of at least this share of the largest probability; 0 is off")
      .between(0, 1);
  s.number("Repetition Penalty", o.repetition_penalty,
           "Divides (negative ones: multiplies) the logits of ids that are there already; 1 is off")
      .above(0);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response; 0: Rollout/Max New Tokens")
      .at_least(0);
}

void describe_evaluation(param::Section& schema, EvaluationOptions& o) {
  auto e = schema.section("Evaluation", "Held-out figures during the run");
  e.integer("Every", o.every, "Iterations between evaluations; 0 is off").at_least(0);
  e.integer("Prompts", o.prompts, "Held-out prompts, where no sets are named").at_least(1);
  e.number("Temperature", o.temperature, "0 is greedy; where no sets are named").at_least(0);
  e.text("Best By", o.best.metric,
         "Figure by which the best checkpoint is kept (the larger the better), e.g. "
         "val/score/mean or val/NAME/avg@4; empty: none is");
  e.integer("Patience", o.best.patience,
            "Evaluations without progress of that figure after which the run ends; 0: never")
      .at_least(0);
  e.number("Min Delta", o.best.min_delta, "Progress is by more than this").at_least(0);
  e.entries("Sets", "Held-out sets, a section for each name: val/NAME/avg@k, ...",
            [&o](param::Section set, const std::string& name, const param::Section::Peek&) {
              describe_evaluation_set(std::move(set), o.sets[name]);
            });
}

void describe_sft_data(param::Section& schema, SftDataOptions& o) {
  auto s = schema.section("Data", "Examples");
  s.list("Files", o.files,
         "JSONL files of examples (chats, or prompts with responses); none: the in-tree task");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out examples");
  s.text("Chat Template", o.chat_template,
         "How messages become text: auto (the model's own, recognised) or a family");
  s.choice("Answers", o.answers, "Which messages of the assistant in a chat are learned",
           {{"all", SftAnswers::kAll}, {"last", SftAnswers::kLast}});
  s.flag("Shuffle", o.shuffle,
         "Each pass over the files in an order of its own; else as they stand there");
  s.choice("Over Long", o.over_long,
           "What becomes of longer examples: left out, cut at their end, or the run is refused",
           {{"drop", OverLong::kDrop}, {"cut", OverLong::kCut}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Tokens of an example at most; 0: what a micro-batch and the context hold")
      .at_least(0);
}

void describe_preference_data(param::Section& schema, PreferenceDataOptions& o) {
  auto s = schema.section("Data", "Preference pairs");
  s.list("Files", o.files, "JSONL files of pairs: a prompt with a chosen and a rejected response");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out pairs");
  s.text("Chat Template", o.chat_template,
         "How messages become text: auto (the model's own, recognised) or a family");
  s.flag("Shuffle", o.shuffle,
         "Each pass over the files in an order of its own; else as they stand there");
  s.choice("Over Long", o.over_long,
           "What becomes of a pair with a longer side: left out, or the run is refused",
           {{"drop", OverLong::kDrop}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Tokens of a prompt with a response at most; 0: what the context holds")
      .at_least(0);
}

// What every fine-tuning leaves behind, and when.
void describe_tuning_results(param::Section& schema, TuningOptions& o) {
  auto v = schema.section("Validation", "Held-out figures during the run");
  v.integer("Every", o.validate_every,
            "Steps between measurements, besides those at start and end; 0 is off")
      .at_least(0);
  v.text("Best By", o.best_by,
         "Held-out figure by which the best checkpoint is kept beside the newest ones, e.g. "
         "val/loss (the smallest); empty: none is");
  auto c = schema.section("Checkpoint", "Saved states");
  c.integer("Every", o.checkpoint.every,
            "Steps between checkpoints; 0: only where the run is stopped")
      .at_least(0);
  c.integer("Keep", o.checkpoint.keep, "Newest checkpoints that are kept").at_least(1);
  auto out = schema.section("Output", "Where results go");
  out.text("Directory", o.output, "Hugging Face directory of the result").not_empty();
  out.text("Run Directory", o.run_directory,
           "metrics.jsonl, run.h5, status.json, checkpoints; empty: Directory with .run behind it");
}

}  // namespace

void describe(param::Section& schema, RunOptions& o) {
  auto run = describe_run(schema, o.seed, o.hang_seconds);
  describe_deadline(run, o.deadline_margin);
  describe_model(schema, o.model);
  describe_data(schema, o.data);
  describe_rewards(schema, o.rewards);
  describe_rollout(schema, o.rollout);
  describe_algorithm(schema, o);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Iterations", o.training.iterations, "Iterations of the run").at_least(1);
  t.integer("Mini Batches", o.training.mini_batches, "Optimizer steps per epoch over a rollout")
      .at_least(1);
  t.integer("Epochs", o.training.epochs, "Passes over a rollout").at_least(1);
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kGiven);
  describe_critic(schema, o.critic);
  describe_evaluation(schema, o.evaluation);
  auto c = schema.section("Checkpoint", "Saved states");
  c.integer("Every", o.checkpoint.every, "Iterations between checkpoints; 0: only at the end")
      .at_least(0);
  c.integer("Keep", o.checkpoint.keep, "Newest checkpoints that are kept").at_least(1);
  auto out = schema.section("Output", "Where results go");
  out.text("Directory", o.output, "run.h5, rollouts, metrics.jsonl, checkpoints").not_empty();
  schema.check([&o] { return o.problems(); });
}

void describe(param::Section& schema, SftOptions& o) {
  auto run = describe_run(schema, o.seed, o.hang_seconds);
  describe_deadline(run, o.deadline_margin);
  describe_model(schema, o.model);
  describe_sft_data(schema, o.data);
  auto d = schema.section("Data");
  d.text("Task", o.task, "In-tree task where there are no files: mix, sum, gcd or collatz");
  d.check([&o] { return task_problems(o.task); });
  d.number("Direct Fraction", o.direct_fraction,
           "Share of examples that give the answer without work")
      .between(0, 1);
  d.number("Slip Rate", o.slip_rate, "Probability of a wrong step in worked examples")
      .between(0, 1);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps").at_least(1);
  t.integer("Epochs", o.epochs, "Passes over Data/Files, instead of Steps; 0: by Steps")
      .at_least(0);
  t.integer("Batch Tokens", o.batch_tokens, "Tokens per optimizer step, over all ranks")
      .at_least(1);
  t.flag("From Scratch", o.from_scratch,
         "Start from random weights of the directory's config.json");
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

void describe(param::Section& schema, RewardModelOptions& o) {
  auto run = describe_run(schema, o.seed, o.hang_seconds);
  describe_deadline(run, o.deadline_margin);
  describe_model(schema, o.model);
  describe_preference_data(schema, o.data);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Steps", o.steps, "Optimizer steps, instead of Epochs; 0: by Epochs").at_least(0);
  t.integer("Epochs", o.epochs, "Passes over Data/Files; 0: by Steps").at_least(0);
  t.integer("Batch Pairs", o.batch_pairs, "Pairs per optimizer step, over all ranks").at_least(1);
  t.number("Center Rewards", o.center_rewards,
           "Factor of the square of the two rewards' sum in the loss, which keeps them around zero")
      .at_least(0);
  describe_passes(t, o.training);
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kOfRun);
  describe_tuning_results(schema, o);
  schema.check([&o] { return o.problems(); });
}

}  // namespace taper
