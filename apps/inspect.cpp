// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Printable.hpp"
#include "base/Text.hpp"
#include "inspect/Inspector.hpp"
#include "inspect/RolloutText.hpp"
#include "inspect/Validator.hpp"
#include "param/CommandLine.hpp"
#include "results/FileSchema.hpp"
#include "session/Startup.hpp"

namespace taper {
namespace {

// Files get the text as it is; a terminal would obey control characters in it.
void print(const std::string& text) {
  std::fputs((::isatty(STDOUT_FILENO) != 0 ? printable(text) : text).c_str(), stdout);
}

// Throws Error if there are problems.
void print(const std::string& path, const Inspection& found) {
  print(found.text);
  if (found.problems.empty()) return;
  print("problems:\n");
  for (const auto& problem : found.problems) print("  " + problem + "\n");
  std::fflush(stdout);  // before the error
  const bool one = found.problems.size() == 1;
  TAPER_FAIL(ExitCode::kBadInput,
             path_text(path) << ": " << found.problems.size() << " damaged or unreadable "
                             << (one ? "file" : "files") << " (listed above)"
                             << (found.advice.empty() ? "" : "; ") << join(found.advice, "; "));
}

// Throws Error if there are faults, which are on standard output by then.
void print(const std::string& path, const Validation& found) {
  for (const auto& [lines, kind] :
       {std::pair(&found.good, ""), {&found.notes, "note: "}, {&found.faults, "FAULT: "}})
    for (const std::string& line : *lines) print(kind + line + "\n");
  if (found.faults.empty()) return;
  std::fflush(stdout);  // before the error
  TAPER_FAIL(ExitCode::kBadInput,
             path_text(path) << ": " << count_text(std::ssize(found.faults), "fault")
                             << " (listed above); doc/results-schema.md describes the files");
}

// Of one format, "run" or "taper-run", or of all.
void print_schemas(const std::string& format) {
  std::vector<std::string> known{"all"};
  for (const FileSchema* schema : all_schemas()) {
    const std::string brief = schema->format.substr(std::string("taper-").size());
    known.push_back(brief);
    if (format != "all" && format != brief && format != schema->format) continue;
    print((format == "all" ? "## " + schema->file + "\n\n" : "") + to_markdown(*schema) +
          (format == "all" ? "\n" : ""));
    if (format != "all") return;
  }
  TAPER_VALIDATE(format == "all",
                 "taper inspect --schema: unknown format " << format << " (" << join(known) << ")");
}

}  // namespace

int run_inspect(int argc, char** argv) {
  std::string path, repair, model, schema;
  int text = 0;
  bool validate = false;
  param::CommandLine line(
      "taper inspect",
      "Prints a file (HDF5, safetensors, JSON), a run, a checkpoint or a model directory, and "
      "checks it.");
  line.positional("PATH", path, "file or directory");
  line.flag("validate", validate,
            "checks HDF5 files, or all files of a run, against their schema; prints every fault");
  line.text("schema", schema, "FORMAT",
            "prints the schema of a file format: run, rollouts, profile, state, or all");
  line.text("repair", repair, "RUN_DIR", "rewrites run.h5 of a run from its metrics.jsonl");
  line.integer(
          "text", text, "N",
          "prints the first N samples of a rollout file, or of the newest one of a run, as text")
      .at_least(1);
  line.text("model", model, "DIR",
            "model directory with the tokenizer for --text; default: the model of the run");
  if (line.parse_or_print_help(argc, argv)) return 0;
  TAPER_VALIDATE(int{!path.empty()} + int{!repair.empty()} + int{!schema.empty()} == 1,
                 "taper inspect: give either PATH or --repair RUN_DIR or --schema FORMAT");
  TAPER_VALIDATE(text > 0 ? !path.empty() : model.empty(),
                 "taper inspect: --text goes with PATH, and --model with --text");
  TAPER_VALIDATE(!validate || (!path.empty() && text == 0),
                 "taper inspect: --validate goes with PATH, and not with --text");
  // Started like the other commands, with several ranks: one of them looks and prints.
  std::optional<MpiSession> session;
  if (is_one_of_several(process_environment)) session.emplace(argc, argv);
  if (session && session->rank() > 0) return 0;
  if (!schema.empty()) {
    print_schemas(schema);
  } else if (validate) {
    print(path, validate_results(path));
  } else if (text > 0) {
    print(rollout_text(path, text, model));
  } else if (!repair.empty()) {
    print(repair_run(repair));
  } else {
    print(path, inspect(path));
  }
  return 0;
}

}  // namespace taper
