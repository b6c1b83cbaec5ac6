// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "data/PromptEncoder.hpp"
#include "infer/ScoreJob.hpp"
#include "io/AtomicFile.hpp"
#include "io/InputPath.hpp"
#include "io/OutputPath.hpp"
#include "session/Session.hpp"

namespace taper {

int run_score(int argc, char** argv) {
  std::string input, output;
  ModelArguments arguments;
  ScoreOptions options;
  param::CommandLine line(
      "taper score",
      "Computes log-probs of given tokens at temperature 1. Writes a line {\"log_probs\": [...]} "
      "for each line of input: for the response in a line of taper generate's output, or for all "
      "tokens of {\"tokens\": [...]} (null for the first).");
  arguments.declare(line, LayoutForms::kUniform);
  line.text("input", input, "FILE",
            "token ids, JSON lines: the output of taper generate, or tokens")
      .required();
  line.text("output", output, "FILE", "log-probs, JSON lines; written when all are done")
      .required();
  line.integer("max-tokens", options.max_tokens, "N",
               "tokens per micro-batch; longer sequences get a micro-batch of their own")
      .at_least(1);
  if (line.parse_or_print_help(argc, argv)) return 0;
  check_numbers(arguments.numbers);
  Session session(argc, argv);
  options.type = arguments.numbers.type;
  options.tp = arguments.grid(session.size()).tp;
  ModelFiles files(arguments.model, "--model");
  require_input_file("--input", input);
  const ScoreInput given = read_score_input(input, files);
  if (session.rank() == 0) require_writable(output, {input});
  Ranks& ranks = session.start({options.tp}, arguments.hang_seconds, ".");
  set_precision(ranks.exec, arguments.numbers.precision());
  require_equal(ranks, path_text(input), hash_text(given.sequences));
  ScoreJob job(options, files, given.sequences, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  const auto scores = job.run();
  if (ranks.rank() == 0) {
    AtomicFile file(output);
    for (std::size_t i = 0; i < scores.size(); ++i)
      file.write(score_line(scores[i], given.prompt_lengths[i]));
    file.commit();
  }
  TAPER_INFO("completed: " << count_text(std::ssize(scores), "sequence") << ", results in "
                           << path_text(output));
  return 0;
}

}  // namespace taper
