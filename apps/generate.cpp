// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "data/PromptEncoder.hpp"
#include "infer/GenerateJob.hpp"
#include "io/InputPath.hpp"
#include "io/OutputPath.hpp"
#include "rollout/GenerationRecord.hpp"
#include "session/LayoutChecks.hpp"
#include "session/Session.hpp"

namespace taper {
namespace {

void report_speed(const SampleSet& samples, double seconds, int ranks) {
  std::int64_t tokens = 0;
  for (const SampleSummary& s : samples.all()) tokens += s.response_tokens;
  char line[160];
  std::snprintf(line, sizeof line, "%s in %.2f s: %.1f tokens/s of all ranks (%s, %s)",
                count_text(tokens, "token").c_str(), seconds, static_cast<double>(tokens) / seconds,
                count_text(samples.size(), "response").c_str(), count_text(ranks, "rank").c_str());
  TAPER_INFO(line);
}

// Of one generation, as run.h5 has it of an iteration.
void write_record(const std::string& record, const GenerateOptions& options,
                  const GenerationReport& report, const Ranks& ranks) {
  RunFile file(record);
  file.set_machine(run_facts(ranks));
  add_generations(file, 1, options, {&report, 1});
  file.add_metrics(1, generation_metrics(options, {&report, 1}));
  file.save();
}

}  // namespace

int run_generate(int argc, char** argv) {
  std::string prompts_file, output, record_file, chat_template = "auto";
  ModelArguments arguments;
  GenerateOptions options;
  param::CommandLine line("taper generate",
                          "Generates responses to prompts, which are JSON lines with \"prompt\" "
                          "(text or chat), \"messages\" or \"tokens\" (doc/data.md).");
  arguments.declare(line, LayoutForms::kMixed);
  line.text("prompts", prompts_file, "FILE", "the prompts, JSON lines").required();
  line.text("output", output, "FILE", "the responses, JSON lines; written when all are done")
      .required();
  declare_sampling(line, options);
  line.choice("mode", options.mode,
              "static: never change the layout; advise: only record when it would be changed "
              "(--record); adaptive: change it when it pays",
              named_planner_modes());
  line.text("profile", options.profile, "FILE",
            "latency profile of this model and machine, for advise and adaptive");
  line.text("record", record_file, "FILE", "records consultations and layout changes, HDF5");
  line.text("chat-template", chat_template, "FILE",
            "Jinja template that turns messages into text: auto (the model's own) or a file");
  if (line.parse_or_print_help(argc, argv)) return 0;
  check_sampling(options);
  check_numbers(arguments.numbers);
  Session session(argc, argv);
  options.type = arguments.numbers.type;
  options.layout = arguments.layout;
  require_layout("--layout", arguments.layout, session.size());
  std::vector<int> degrees = degrees_of_layout("--layout", arguments.layout);
  if (degrees.empty()) degrees = {1};
  options.tp = options.mode == PlannerMode::kStatic ? degrees.front() : 1;
  ModelFiles files(arguments.model, "--model");
  require_input_file("--prompts", prompts_file);
  const auto prompts = encode_prompt_file(prompts_file, files, chat_template);
  if (session.rank() == 0) {
    const std::vector<std::filesystem::path> inputs{prompts_file, options.profile};
    require_writable(output, inputs);
    if (!record_file.empty()) require_writable(record_file, inputs);
  }
  Ranks& ranks = session.start(degrees, arguments.hang_seconds, ".");
  set_precision(ranks.exec, arguments.numbers.precision());
  require_equal(ranks, path_text(prompts_file), hash_text(prompts));
  GenerateJob job(options, files, prompts, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  SampleSet samples = job.run();
  write_responses(output, samples, files, ranks.world());
  report_speed(samples, job.seconds(), ranks.size());
  if (options.mode != PlannerMode::kStatic) TAPER_INFO(summary(job.report()));
  report_drafts(options, job.report());
  if (ranks.rank() == 0 && !record_file.empty())
    write_record(record_file, options, job.report(), ranks);
  TAPER_INFO("completed: " << count_text(samples.size(), "response") << ", results in "
                           << path_text(output)
                           << (record_file.empty() ? "" : " and " + path_text(record_file)));
  return 0;
}

}  // namespace taper
