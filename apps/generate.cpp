// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "Session.hpp"
#include "base/Log.hpp"
#include "driver/GenerateJob.hpp"
#include "driver/OutputLines.hpp"
#include "driver/PromptEncoder.hpp"
#include "io/AtomicFile.hpp"

namespace taper {
namespace {

enum class Mode { kStatic };

void report_speed(const std::vector<Sample>& samples, double seconds, int ranks) {
  std::int64_t tokens = 0;
  for (const Sample& s : samples) tokens += static_cast<std::int64_t>(s.response.size());
  char line[160];
  std::snprintf(line, sizeof line, "%lld tokens in %.2f s: %.1f tokens/s (%zu responses, %d ranks)",
                static_cast<long long>(tokens), seconds, static_cast<double>(tokens) / seconds,
                samples.size(), ranks);
  TAPER_INFO(line);
}

}  // namespace

int run_generate(int argc, char** argv) {
  std::string prompts_file, output, chat_template = "auto";
  ModelArguments arguments;
  GenerateOptions options;
  Mode mode = Mode::kStatic;
  param::CommandLine line(
      "taper generate",
      "Generates responses to prompts: JSON lines with \"prompt\", \"messages\" or \"tokens\".");
  arguments.declare(line);
  line.text("prompts", prompts_file, "FILE", "the prompts, JSON lines").required();
  line.text("output", output, "FILE", "the responses, JSON lines; written when all are done")
      .required();
  declare_sampling(line, options);
  line.choice("mode", mode, "whether the layout changes meanwhile", {{"static", Mode::kStatic}});
  line.text("chat-template", chat_template, "FAMILY",
            "how messages become text: auto (the model's own) or a family");
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  Session session(argc, argv);
  options.type = arguments.type;
  options.tp = arguments.grid(session.size()).tp;
  ModelFiles files(arguments.model);
  const auto prompts = encode_prompt_file(prompts_file, files, chat_template);
  if (session.rank() == 0) require_writable(output);
  Ranks& ranks = session.start({options.tp}, arguments.hang_seconds, ".");
  require_equal(ranks, prompts_file, hash_text(prompts));
  GenerateJob job(options, files, prompts, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  const std::vector<Sample> samples = job.run();
  if (session.rank() == 0) {
    AtomicFile file(output);
    for (const Sample& s : samples) file.write(response_line(s, files));
    file.commit();
  }
  report_speed(samples, job.seconds(), ranks.size());
  return 0;
}

}  // namespace taper
