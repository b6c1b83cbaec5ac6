// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/SaveModel.hpp"
#include "io/InputPath.hpp"
#include "io/OutputPath.hpp"
#include "run/OutputLock.hpp"
#include "session/Session.hpp"
#include "tune/ExitJob.hpp"

namespace taper {

int run_exits(int argc, char** argv) {
  std::string input, output;
  ModelArguments arguments;
  ExitOptions options;
  param::CommandLine line(
      "taper exits",
      "Makes early exits of a model for speculation: heads behind some of its layers, which learn "
      "from responses of the model what it says next.");
  arguments.declare(line, LayoutForms::kUniform);
  line.list("layers", options.layers, "LIST", "layers before each exit, ascending: 10,20")
      .required();
  line.text("responses", input, "FILE", "responses of the model, the output of taper generate")
      .required();
  line.text("output", output, "DIR", "directory of the exits").required();
  line.integer("vocabulary", options.vocabulary, "N",
               "ids that the exits know: those most frequent in the responses")
      .at_least(1);
  line.number("temperature", options.temperature, "T", "temperature of the responses; greedy: 1")
      .above(0);
  line.integer("passes", options.passes, "N", "passes over the responses").at_least(1);
  line.number("rate", options.rate, "R", "learning rate").above(0);
  line.integer("max-tokens", options.max_tokens, "N",
               "tokens per micro-batch; longer sequences get a micro-batch of their own")
      .at_least(1);
  if (line.parse_or_print_help(argc, argv)) return 0;
  check_numbers(arguments.numbers);
  Session session(argc, argv);
  options.type = arguments.numbers.type;
  options.tp = arguments.grid(session.size()).tp;
  ModelFiles files(arguments.model, "--model");
  require_input_file("--responses", input);
  const ScoreInput given = read_score_input(input, files);
  if (session.rank() == 0) {
    require_output_directory("--output", output);
    require_target("--output", output, ExitFiles::list_file("").string(), "early exits", "they");
  }
  Ranks& ranks = session.start({1, options.tp}, arguments.hang_seconds, ".");
  set_precision(ranks.exec, arguments.numbers.precision());
  require_equal(ranks, path_text(input), hash_text(given.sequences));
  const OutputLock lock(ranks, "--output " + path_text(output), OutputLock::of_model(output));
  ExitJob job(options, files, given, output, ranks);
  const double loss = job.run();
  TAPER_INFO("completed: exits behind "
             << join(options.layers) << " of " << files.config.layers
             << format_text(" layers, loss %.3f nat per token, in ", loss) << path_text(output));
  return 0;
}

}  // namespace taper
