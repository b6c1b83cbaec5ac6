// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "Session.hpp"
#include "base/Log.hpp"
#include "driver/OutputLines.hpp"
#include "driver/PromptEncoder.hpp"
#include "driver/ScoreJob.hpp"
#include "io/AtomicFile.hpp"

namespace taper {

int run_score(int argc, char** argv) {
  std::string input, output;
  ModelArguments arguments;
  arguments.type = WeightType::kF32;
  ScoreOptions options;
  param::CommandLine line(
      "taper score",
      "Log-probs of given token ids at temperature 1: {\"tokens\": [...]} becomes "
      "{\"log_probs\": [null, ...]}, line by line.");
  arguments.declare(line);
  line.text("input", input, "FILE", "token ids, JSON lines").required();
  line.text("output", output, "FILE", "log-probs, JSON lines; written when all are done")
      .required();
  line.integer("max-tokens", options.max_tokens, "N",
               "tokens per micro-batch; longer sequences stand alone")
      .at_least(1);
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  Session session(argc, argv);
  options.type = arguments.type;
  options.tp = arguments.grid(session.size()).tp;
  ModelFiles files(arguments.model);
  const auto sequences = read_token_file(input, files);
  if (session.rank() == 0) require_writable(output);
  Ranks& ranks = session.start({options.tp}, arguments.hang_seconds, ".");
  require_equal(ranks, input, hash_text(sequences));
  ScoreJob job(options, files, sequences, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  const auto scores = job.run();
  if (session.rank() == 0) {
    AtomicFile file(output);
    for (const auto& s : scores) file.write(score_line(s));
    file.commit();
  }
  return 0;
}

}  // namespace taper
