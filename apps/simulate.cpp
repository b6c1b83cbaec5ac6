// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/AtomicFile.hpp"
#include "io/InputPath.hpp"
#include "io/OutputPath.hpp"
#include "param/CommandLine.hpp"
#include "param/ParamFile.hpp"
#include "profile/ProfileFile.hpp"
#include "study/Calibration.hpp"
#include "study/DescribedPlacements.hpp"
#include "study/RoundStudy.hpp"
#include "study/SimulateJob.hpp"

namespace taper {
namespace {

struct Arguments {
  std::string input, output, calibrate;
  std::vector<std::string> assignments, variations;
  bool dump_default = false, check = false, rounds = false, placements = false;
};

// A row of the table: a file, and one assignment more than the others have.
struct Row {
  std::string file, name, assignment;
};

std::vector<std::string> files_of(const std::string& input) {
  if (input.empty()) return {""};
  require_input_path("CASE", input);
  if (!std::filesystem::is_directory(input)) return {input};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(input))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  TAPER_VALIDATE(!files.empty(), "CASE is " << path_text(input)
                                            << " (no *.yaml in it); name a directory of described "
                                               "cases, or one of them");
  return files;
}

// "A/B=1;2" -> "A/B=1", "A/B=2".
std::vector<std::string> values_of(const std::string& variation) {
  const std::size_t equals = variation.find('=');
  TAPER_VALIDATE(equals != std::string::npos && equals + 1 < variation.size(),
                 "--vary is \"" << variation
                                << "\" (a name and its values are expected); write e.g. "
                                   "\"Machine/Ranks=64;256\"");
  std::vector<std::string> list;
  for (std::size_t at = equals + 1; at <= variation.size();) {
    const std::size_t end = std::min(variation.find(';', at), variation.size());
    list.push_back(variation.substr(0, equals + 1) + variation.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

std::vector<Row> rows_of(const Arguments& a) {
  std::vector<Row> rows;
  for (const std::string& file : files_of(a.input)) {
    const std::string name = file.empty() ? "default" : std::filesystem::path(file).stem().string();
    rows.push_back({file, name, ""});
    for (const std::string& variation : a.variations)
      for (const std::string& assignment : values_of(variation))
        rows.push_back({file, assignment, assignment});
  }
  return rows;
}

void read(const Row& row, const Arguments& a, SimulateOptions& options) {
  param::Schema schema;
  describe(schema, options);
  param::ParamFile file = row.file.empty() ? param::ParamFile() : param::ParamFile::read(row.file);
  for (const auto& assignment : a.assignments) file.set(assignment);
  if (!row.assignment.empty()) file.set(row.assignment);
  schema.read(file);
}

void declare(param::CommandLine& line, Arguments& a) {
  line.positional("CASE", a.input,
                  "description of a machine and its generations (YAML), or a directory of "
                  "such files; default: only defaults and --set");
  line.repeated("set", a.assignments, "NAME=VALUE",
                "overrides a value of all cases, e.g. \"Machine/Ranks=64\"");
  line.repeated("vary", a.variations, "NAME=V;V;...",
                "prints one row per value, e.g. \"Machine/Ranks=64;256;1024\"");
  line.text("calibrate", a.calibrate, "FILE",
            "compares the described step times with a measured profile.h5, without a simulation");
  line.text("output", a.output, "FILE", "one JSON line per row");
  line.flag("dump-default", a.dump_default, "prints a complete case with the defaults and exits");
  line.flag("rounds", a.rounds,
            "plays rounds of tail batching, with and without changes of layout (doc/rounds.md)");
  line.flag("placements", a.placements,
            "searches the best placement of the models of Training (doc/placement.md)");
  line.flag("check", a.check,
            "validates the cases, prints degrees, memory and sequences in flight, and exits");
}

// Throws Error if an option would have no effect beside the others.
void require_compatible(const Arguments& a) {
  std::vector<std::string> tables;
  if (!a.calibrate.empty()) tables.push_back("--calibrate");
  if (a.rounds) tables.push_back("--rounds");
  if (a.placements) tables.push_back("--placements");
  TAPER_VALIDATE(tables.size() < 2, join(tables, " and ")
                                        << " cannot be used together (each prints "
                                           "a table of its own); choose one");
  TAPER_VALIDATE(tables.empty() || a.output.empty(),
                 "--output cannot be used with " << tables.front()
                                                 << " (which prints a table only); leave one of "
                                                    "them out");
  TAPER_VALIDATE(a.calibrate.empty() || !a.check,
                 "--check cannot be used with --calibrate (which simulates nothing that could be "
                 "checked); leave one of them out");
}

}  // namespace

int run_simulate(int argc, char** argv) {
  Arguments a;
  param::CommandLine line("taper simulate", "Evaluates the planner on described machines.");
  declare(line, a);
  if (line.parse_or_print_help(argc, argv)) return 0;
  if (a.dump_default) {
    SimulateOptions options;
    param::Schema schema;
    describe(schema, options);
    std::fputs(schema.defaults_yaml().c_str(), stdout);
    return 0;
  }
  require_compatible(a);
  if (!a.output.empty()) require_writable(a.output, {a.input});
  const std::vector<Row> rows = rows_of(a);
  std::vector<SimulateOptions> cases(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) read(rows[i], a, cases[i]);
  if (!a.calibrate.empty()) {
    const LatencyProfile measured = read_profile(a.calibrate);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto errors = calibrate(cases[i].machine, cases[i].model, measured);
      std::printf("%s\n%s\n", rows[i].name.c_str(), to_table(errors).c_str());
    }
    return 0;
  }
  if (a.rounds && !a.check) {
    std::fputs(round_head().c_str(), stdout);
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::fputs(simulate_rounds(cases[i], rows[i].name).c_str(), stdout);
    std::fputs(round_legend().c_str(), stdout);
    return 0;
  }
  if (a.placements && !a.check) {
    std::fputs(placement_head().c_str(), stdout);
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::fputs(placement_row(cases[i], rows[i].name).c_str(), stdout);
    return 0;
  }
  std::vector<SimulatedCase> played;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SimulatedSetting setting = setting_of(cases[i]);
    if (a.check)
      std::printf("%s: input is valid\n%s\n", rows[i].name.c_str(), setting.table().c_str());
    else
      played.push_back(simulate(cases[i], rows[i].name));
  }
  if (a.check) return 0;
  std::fputs(to_table(played).c_str(), stdout);
  if (!a.output.empty()) write_file_atomically(a.output, to_json_lines(played));
  return 0;
}

}  // namespace taper
