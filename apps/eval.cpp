// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "data/PromptSource.hpp"
#include "infer/EvalJob.hpp"
#include "io/AtomicFile.hpp"
#include "io/OutputPath.hpp"
#include "param/ParamFile.hpp"
#include "reward/RewardModel.hpp"
#include "session/LayoutChecks.hpp"
#include "session/Session.hpp"
#include "train/RunOptions_params.hpp"
#include "workers/Spawner.hpp"

namespace taper {
namespace {

struct EvalArguments {
  HeldOut from{.file = "", .task = "mix"};
  std::string chat_template = "auto";
  RewardRule rule = RewardRule::kTask;
  std::string rewards, reward_logs = "taper-reward-logs", output;

  void declare(param::CommandLine& line) {
    line.text("task", from.task, "NAME",
              "evaluates on held-out items of an in-tree task: mix, sum, gcd or collatz");
    line.text("prompts", from.file, "FILE",
              "JSONL file of prompts with ground truths, instead of a task");
    line.choice("rule", rule, "rule that judges responses to --prompts", named_reward_rules());
    line.text("rewards", rewards, "FILE",
              "judges responses by the Rewards of this run file (YAML) instead of a rule; "
              "scores above 0.5 count as right");
    line.text("reward-logs", reward_logs, "DIR",
              "directory for the logs of reward workers, if --rewards has any");
    line.text("chat-template", chat_template, "FILE",
              "Jinja template that turns messages into text: auto (the model's own) or a file");
    line.integer("count", from.count, "N", "number of prompts; 0: all of a file, 256 of a task")
        .at_least(0);
    line.text("output", output, "FILE", "writes the metrics as JSON");
  }

  void check(const param::CommandLine& line) const {
    const bool file = !from.file.empty();
    TAPER_VALIDATE(!(file && line.given("task")),
                   "--task and --prompts are both given (choose one)");
    if (!rewards.empty()) {
      TAPER_VALIDATE(!line.given("rule"), "--rule and --rewards are both given (choose one)");
      return;
    }
    TAPER_VALIDATE(
        file == (rule != RewardRule::kTask),
        (file ? "--prompts needs --rule exact, gsm8k-strict, gsm8k-flexible or boxed, or --rewards"
              : "--rule is for --prompts (in-tree tasks have their own)"));
  }

  // How --prompts is read.
  PromptReading reading(const ModelFiles& files) const {
    return {"--prompts", chat_template, files.config.max_positions - 1,
            "shorten them (the model's context holds no more)"};
  }

  // Throws Error if the file of rewards is none, or they do not fit the prompts.
  std::vector<RewardOptions> judged_by(const std::string& model, int max_new_tokens) const {
    RunOptions run;  // a file may have all of a run's parameters, or these alone
    run.model.directory = model;
    run.rollout.max_new_tokens = max_new_tokens;
    const std::vector<std::string> prompts(from.file.empty() ? 0 : 1, from.file);
    run.data.prompts = prompts;
    run.rule = rule;
    if (rewards.empty()) return run.judged_by();
    param::Schema schema;
    describe(schema, run);
    read_run(schema, param::ParamFile::read(rewards));
    run.data.prompts = prompts;
    run.evaluation = {};
    require_no_problems(run.problems(), "--rewards " + path_text(rewards));
    return run.judged_by();
  }
};

}  // namespace

int run_eval(int argc, char** argv) {
  EvalArguments eval;
  ModelArguments arguments;
  GenerateOptions options;
  options.max_new_tokens = 1024;
  options.sampling.temperature = 0.0f;
  param::CommandLine line("taper eval",
                          "Accuracy of a model on a task: avg@k, pass@k and maj@k over k samples.");
  arguments.declare(line, LayoutForms::kUniform);
  eval.declare(line);
  declare_sampling(line, options);
  if (line.parse_or_print_help(argc, argv)) return 0;
  eval.check(line);
  check_sampling(options);
  check_numbers(arguments.numbers);
  const auto judged_by = [&] { return eval.judged_by(arguments.model, options.max_new_tokens); };
  const auto spawner = make_spawner(judged_by);
  Session session(argc, argv);
  const auto rewards = judged_by();
  options.type = arguments.numbers.type;
  options.tp = arguments.grid(session.size()).tp;
  ModelFiles files(arguments.model, "--model");
  if (eval.from.file.empty() && eval.from.count == 0) eval.from.count = 256;
  auto prompts = held_out_prompts(eval.from, eval.reading(files), options.sampling.seed, files);
  if (session.rank() == 0 && !eval.output.empty())
    require_writable(eval.output, {eval.from.file, eval.rewards});
  NamedDegrees degrees = degrees_of_models(rewards);
  degrees.push_back({"--layout", options.tp});
  Ranks& ranks =
      session.start(require_divisible(session.size(), degrees), arguments.hang_seconds, ".");
  set_precision(ranks.exec, arguments.numbers.precision());
  Fingerprint read;
  add_prompts(read, prompts);
  require_equal(ranks, "the prompts", std::to_string(read.value()));
  EvalJob job(options, rewards, files, std::move(prompts), ranks, spawner.get(), eval.reward_logs);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  if (!job.judge_memory_plan().items().empty())
    TAPER_INFO("memory of rank 0 when the responses are judged\n"
               << job.judge_memory_plan().table());
  const EvalResult result = job.run();
  report_drafts(options, job.report());
  if (ranks.rank() == 0) {
    std::fputs(to_table(result).c_str(), stdout);
    if (!eval.output.empty()) write_file_atomically(eval.output, to_json(result));
  }
  return 0;
}

}  // namespace taper
