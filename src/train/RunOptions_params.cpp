// SPDX-License-Identifier: Apache-2.0
#include "train/RunOptions_params.hpp"

#include "data/DataOptions_params.hpp"
#include "instance/ModelOptions_params.hpp"
#include "optim/OptimizerOptions_params.hpp"
#include "reward/RewardOptions_params.hpp"
#include "rollout/GeneratorOptions_params.hpp"
#include "rollout/RolloutOptions_params.hpp"
#include "run/JobOptions_params.hpp"
#include "train/PlacementFile.hpp"

namespace taper {
namespace {

void describe_advantages(param::Section& s, AdvantageOptions& o) {
  s.choice("Estimator", o.estimator, "How advantages are computed from rewards",
           named_estimators());
  s.choice(
      "Advantage Normalization", o.normalization,
      "How advantages are normalized; default: as is usual for the estimator (doc/algorithms.md)",
      named_normalizations());
  s.number("Gamma", o.gamma, "Discount factor of later rewards, for gae and reinforce++")
      .above(0)
      .at_most(1);
  s.number("Lambda", o.lambda,
           "For gae: weight of later rewards against the critic's values; 1: rewards to the end, "
           "0: one token ahead")
      .between(0, 1);
}

void describe_adjustment(param::Section& s, RewardAdjustmentOptions& o) {
  s.choice("Reward Adjustment", o.how,
           "variance: within each group, scores become those of largest variance in the same order "
           "with the same mean (GRPOVI); metrics and dynamic sampling see them as they were",
           named_reward_adjustments());
  s.number(
      "Reward Low", o.low,
      "Least possible score, for Reward Adjustment; equal to Reward High: the least one of the "
      "iteration");
  s.number("Reward High", o.high, "Largest possible score; equal to Reward Low: the largest one");
  s.check([&o] { return o.problems(); });
}

void describe_loss(param::Section& s, PolicyLossOptions& o) {
  s.choice("Policy Loss", o.kind, "Loss per token", named_policy_losses());
  s.number("Clip Low", o.clip_low, "Probability ratios are clipped below 1 - this value")
      .at_least(0);
  s.number("Clip High", o.clip_high, "Probability ratios are clipped above 1 + this value")
      .at_least(0);
  s.number(
       "Dual Clip", o.dual_clip,
       "Upper bound of the ppo loss for negative advantages, in multiples of the advantage; 0: off")
      .at_least(0);
  s.number("Entropy Coefficient", o.entropy_coef, "Weight of the entropy bonus").at_least(0);
  s.choice("Loss Aggregation", o.aggregation, "How token losses are combined into one number",
           named_aggregations());
  s.number("Length Norm", o.length_norm,
           "Constant length of seq-mean-token-sum-norm; 0: Rollout/Max New Tokens")
      .at_least(0);
  s.check([&o] { return o.problems(); });
}

void describe_kl(param::Section& s, KlOptions& o) {
  s.number("KL Coefficient", o.coef,
           "Weight of the KL to the reference model; 0: no reference model")
      .at_least(0);
  s.choice("KL Estimator", o.estimator, "Per-token KL estimate", named_kl_estimators());
  s.choice("KL In", o.place,
           "loss: add the KL to the loss; reward: subtract it from each token's reward",
           {{"loss", KlPlace::kLoss}, {"reward", KlPlace::kReward}});
  s.choice("KL Control", o.control,
           "Whether the coefficient of the KL in the reward is fixed or adapts to KL Target",
           {{"fixed", KlControl::kFixed}, {"adaptive", KlControl::kAdaptive}});
  s.number("KL Target", o.target, "Target of the adaptive control").above(0);
  s.number("KL Horizon", o.horizon, "Number of samples over which the adaptive control acts")
      .above(0);
  s.check([&o] { return o.problems(); });
}

void describe_correction(param::Section& s, RolloutCorrectionOptions& o) {
  s.choice(
      "Importance Weights", o.weights,
      "Multiply the policy loss by the ratio of the probability that is trained to the one that "
      "the token was sampled with, per token or per sequence",
      named_importance_levels());
  s.number("Importance Cap", o.cap, "Largest importance weight").above(0);
  s.flag("Importance Normalization", o.normalize, "Divide importance weights by their mean");
  s.choice(
      "Rejection", o.rejection,
      "Leave out tokens or sequences whose ratio is below Rejection Low or above Rejection High",
      named_rejection_levels());
  s.number("Rejection Low", o.low, "Smallest ratio that is not rejected").at_least(0);
  s.number("Rejection High", o.high, "Largest ratio that is not rejected").above(0);
  s.check([&o] { return o.problems(); });
}

void describe_speculation(param::Section& schema, RolloutOptions& rollout) {
  SpeculationOptions& o = rollout.speculation;
  auto s = schema.section("Speculation",
                          "Drafts of several tokens per sequence and step, which change no token");
  s.choice("Mode", o.mode, "off; auto: where they pay; fixed: always, for tests",
           named_speculation_modes());
  describe_drafts(o, keys_of(s));
  s.flag("Journal", o.journal,
         "Keep what an iteration has generated when the job is stopped in it, and draft from that "
         "when it is done again");
  s.text("Draft Model", o.draft_model, kDraftModelDoc);
  s.choice("Draft Placement", o.draft_placement, kDraftPlacementDoc, named_draft_placements());
  s.text("Early Exits", o.early_exits, kExitsDoc);
  s.integer("Train Steps", o.train_steps,
            "Optimizer steps of the draft model, or of the early exits, on the responses of each "
            "iteration, so that they follow the policy; 0: they stay as they are")
      .at_least(0);
  s.number("Train Rate", o.train_rate, "Learning rate of these steps").above(0);
  s.check([&rollout] { return rollout.speculation_problems(); });
}

void describe_algorithm(param::Section& schema, RunOptions& o) {
  auto s = schema.section("Algorithm", "Advantages and the loss of the policy");
  s.choice(
      "Preset", o.preset,
      "Named algorithm: sets the parameters that the run file does not set (doc/algorithms.md)",
      named_presets());
  describe_advantages(s, o.experience.advantage);
  s.check([&o] { return o.experience.advantage.problems(); });
  describe_adjustment(s, o.experience.adjustment);
  describe_loss(s, o.loss);
  s.flag("Mask Truncated", o.experience.mask_truncated,
         "Responses that ended at the length limit carry no loss");
  describe_kl(s, o.experience.kl);
  describe_correction(s, o.experience.correction);
  s.flag(
      "Dynamic Sampling", o.dynamic.on,
      "Train only on prompts whose samples differ in score, and generate until there are enough");
  s.integer("Max Rounds", o.dynamic.max_rounds,
            "Largest number of generations per iteration; after it, the batch is filled with "
            "prompts whose samples do not differ")
      .at_least(1);
}

void describe_placement(param::Section& schema, PlacementOptions& o) {
  auto s = schema.section(
      "Placement",
      "Which ranks the models are on: 4-7 are four ranks, 3-3 is one, 4-7:2x2 (TPxDP) also "
      "says how, before any Tensor Parallel (doc/placement.md)");
  s.choice("Strategy", o.strategy,
           "flattening: all models on all ranks; interleaving: models that only score share out "
           "the ranks; separation: the upper half of the ranks learns, the lower one generates; "
           "plan: as Placement/File says",
           named_placement_strategies());
  s.text("File", o.file, "Plan of taper plan, for Strategy plan");
  s.text("Policy", o.policy, "Ranks on which the policy learns; empty: by the strategy");
  s.text("Generation", o.generation, "Ranks that generate, from rank 0 on; empty: by the strategy");
  s.text("Reference", o.reference, "Ranks of the reference model; empty: by the strategy");
  s.text("Critic", o.critic, "Ranks of the critic; empty: by the strategy");
}

void describe_balance(param::Section& schema, BalanceOptions& o) {
  auto s = schema.section("Balance", "Ranks that compute more slowly than others in training");
  s.choice(
      "Mode", o.mode,
      "off; advise: says which ranks are slow; on: and gives them less to train, which changes "
      "no bit if Training/Exactness is layout",
      {{"off", BalanceMode::kOff}, {"advise", BalanceMode::kAdvise}, {"on", BalanceMode::kOn}});
  s.number("Margin", o.margin,
           "Ranks whose speed is nearer to the median than this share count as equally fast")
      .between(0, 0.9);
}

void describe_critic(param::Section& schema, CriticOptions& o) {
  auto s = schema.section("Critic", "The critic, used if Algorithm/Estimator is gae");
  s.text("Model Directory", o.directory,
         "Hugging Face directory of the initial weights: a reward model, or a language model, "
         "which gets a new head; empty: Model/Directory");
  describe_schedule(s, o.schedule, ScheduleEnd::kGiven, "Critic");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica of the critic; 0: as the policy in training")
      .at_least(0);
  s.integer("Mini Batches", o.mini_batches,
            "Optimizer steps per epoch over a rollout; 0: as the policy")
      .at_least(0);
  s.integer("Epochs", o.epochs, "Passes over a rollout; 0: as the policy").at_least(0);
  s.integer("Warmup Iterations", o.warmup,
            "Number of first iterations in which only the critic learns")
      .at_least(0);
  s.number(
       "Value Clip", o.clip,
       "Values are clipped in the loss to at most this distance from those of the rollout; 0: off")
      .at_least(0);
}

void describe_evaluation_set(param::Section s, EvaluationSetOptions& o) {
  s.text("Prompt File", o.file,
         "JSONL file of held-out prompts; empty: held-out items of the task");
  s.text("Task", o.task, "In-tree task to use without a file; empty: Data/Task");
  s.choice("Reward Rule", o.rule,
           "Rule that judges responses to the file's prompts; task: Data/Reward Rule",
           named_reward_rules());
  s.integer("Prompts", o.prompts, "Number of prompts, from the first; 0: all of the file")
      .at_least(0);
  s.integer("Samples", o.samples, "Responses per prompt, the k of avg@k, pass@k and maj@k")
      .between(1, 65535);
  describe_sampling(o.sampling, keys_of(s));
  s.integer("Max New Tokens", o.max_new_tokens,
            "Longest response in tokens; 0: Rollout/Max New Tokens")
      .at_least(0);
}

void describe_evaluation(param::Section& schema, EvaluationOptions& o) {
  auto e = schema.section("Evaluation", "Evaluation on held-out prompts during the run");
  e.integer("Every", o.every, "Iterations between evaluations; 0: no evaluations").at_least(0);
  e.integer("Prompts", o.prompts, "Number of held-out prompts, if there are no named sets")
      .at_least(1);
  e.number("Temperature", o.temperature,
           "Softmax temperature, if there are no named sets; 0: greedy")
      .at_least(0);
  e.text("Best By", o.best.metric,
         "Metric that selects the best checkpoint, which is then kept (larger is better), e.g. "
         "val/score/mean or val/NAME/avg@4; empty: no best checkpoint");
  e.integer("Patience", o.best.patience,
            "End the run after this many evaluations without progress of that metric; 0: never")
      .at_least(0);
  e.number("Min Delta", o.best.min_delta, "Smallest improvement that counts as progress")
      .at_least(0);
  e.entries("Sets", "Held-out sets, one section per name; their metrics are val/NAME/avg@k, ...",
            [&o](param::Section set, const std::string& name, const param::Section::Peek&) {
              describe_evaluation_set(std::move(set), o.sets[name]);
            });
}

}  // namespace

void describe(param::Section& schema, RunOptions& o) {
  describe_run(schema, o);
  describe_model(schema, o.model);
  describe_data(schema, o.data);
  schema.section("Data").choice("Reward Rule", o.rule,
                                "Rule that scores a response if there are no Rewards",
                                named_reward_rules());
  describe_rewards(schema, o.rewards);
  describe_rollout(schema, o.rollout);
  describe_speculation(schema, o.rollout);
  describe_algorithm(schema, o);
  auto t = schema.section("Training", "The update of the weights");
  t.integer("Iterations", o.training.iterations, "Iterations of the run").at_least(1);
  t.integer("Mini Batches", o.training.mini_batches, "Optimizer steps per epoch over a rollout")
      .at_least(1);
  t.integer("Epochs", o.training.epochs, "Passes over a rollout").at_least(1);
  describe_passes(t, o.training);
  t.flag(
      "Shared Prompts", o.training.shared_prompts,
      "Compute a prompt once for all of its samples in a micro-batch, which changes no log-prob, "
      "but how gradients are rounded");
  t.flag("Early Learning", o.training.early_learning,
         "Learn from a prompt as soon as its responses have ended, on ranks that have nothing to "
         "generate, while others generate (doc/early-work.md)");
  t.flag("Early Scoring", o.training.early_scoring,
         "Reward models, reference and critic score responses that have ended, on ranks that have "
         "nothing to generate, while others generate (doc/early-work.md); part of Early Learning");
  t.flag("Offload Reference", o.training.offload_reference,
         "On GPUs, keep the weights of the reference in page-locked memory of the host, and bring "
         "them to the GPU when it scores");
  describe_optimizer(schema, o.adamw, o.schedule, ScheduleEnd::kGiven);
  describe_critic(schema, o.critic);
  describe_placement(schema, o.placement);
  describe_balance(schema, o.balance);
  describe_evaluation(schema, o.evaluation);
  auto c = schema.section("Checkpoint", "Saved states");
  c.integer("Every", o.checkpoint.every, "Iterations between checkpoints; 0: only at the end")
      .at_least(0);
  c.integer("Keep", o.checkpoint.keep, "Number of newest checkpoints to keep").at_least(1);
  auto out = schema.section("Output", "Where results are written");
  out.text("Directory", o.output, "Directory for run.h5, rollouts, metrics.jsonl and checkpoints")
      .not_empty();
  schema.check([&o] { return o.problems(); });
}

AppliedPreset read_run(param::Schema& schema, param::ParamFile file) {
  AppliedPreset preset = apply_preset(file);
  apply_placement_file(file);
  schema.read(file);
  return preset;
}

}  // namespace taper
