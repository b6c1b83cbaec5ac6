// SPDX-License-Identifier: Apache-2.0
#include "train/PlacementFile.hpp"

#include <sstream>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/AtomicFile.hpp"
#include "param/Schema.hpp"
#include "placement/Placement.hpp"
#include "profile/RunIdentity.hpp"

namespace taper {
namespace {

constexpr const char* kFile = "Placement/File";
constexpr const char* kAdvice = "; make another one with taper plan";

// The plan as its file has it: facts as "model/layers=30", settings as --set takes them.
struct PlanText {
  int ranks = 0;
  std::vector<std::string> models, identity, settings;
  double seconds = 0, flat_seconds = 0;
};

void describe(param::Section& schema, PlanText& o) {
  auto s = schema.section("Plan", "A placement that taper plan has found");
  s.integer("Ranks", o.ranks, "Ranks of the run that it is for").at_least(1);
  s.list("Models", o.models, "Models of that run");
  s.number("Iteration Seconds", o.seconds, "Predicted time of an iteration").at_least(0);
  s.number("Flattening Seconds", o.flat_seconds,
           "Predicted time of an iteration with all models on all ranks")
      .at_least(0);
  s.list("Settings", o.settings, "Parameters that place the models, as --set takes them")
      .not_empty();
  s.list("Identity", o.identity, "What the profile of the policy was measured on");
}

std::pair<std::string, std::string> cut(const std::string& text, char at) {
  const std::size_t place = text.find(at);
  TAPER_VALIDATE(place != std::string::npos, "'" << text << "' has no '" << at << "'");
  return {text.substr(0, place), text.substr(place + 1)};
}

// The facts of an identity, line by line with other separators.
std::vector<std::string> texts_of(const ProfileIdentity& identity) {
  std::vector<std::string> texts;
  std::istringstream lines(to_lines(identity));
  for (std::string line; std::getline(lines, line);) {
    line[line.find('\t')] = '/';
    line[line.find('\t')] = '=';
    texts.push_back(line);
  }
  return texts;
}

ProfileIdentity identity_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) {
    const auto [fact, value] = cut(text, '=');
    const auto [part, name] = cut(fact, '/');
    lines += part + '\t' + name + '\t' + value + '\n';
  }
  return identity_from_lines(lines);
}

// Plans place models and change nothing else of a run.
Setting setting_of(const std::string& text) {
  const auto [key, value] = cut(text, '=');
  const bool places =
      key.starts_with("Placement/") || (key.starts_with("Rewards/") && key.ends_with("/Ranks"));
  TAPER_VALIDATE(places, key << " places no model");
  return {key, value};
}

}  // namespace

void write_placement_file(const std::filesystem::path& path, const PlacementFile& placement) {
  PlanText text{placement.ranks,   placement.models,      texts_of(placement.identity), {},
                placement.seconds, placement.flat_seconds};
  for (const auto& [name, value] : placement.settings) text.settings.push_back(name + "=" + value);
  param::Schema schema;
  describe(schema, text);
  write_file_atomically(path, schema.current_yaml());
}

PlacementFile read_placement_file(const std::filesystem::path& path) {
  TAPER_VALIDATE(
      std::filesystem::is_regular_file(path),
      kFile << " is " << path_text(path) << " (there is no such file); make it with taper plan");
  PlanText text;
  param::Schema schema;
  describe(schema, text);
  schema.read(param::ParamFile::read(path.string()));
  TAPER_VALIDATE(text.ranks > 0 && !text.settings.empty(),
                 path_text(path) << " is no plan (it has no Ranks or no Settings); make it with "
                                    "taper plan");
  PlacementFile placement{text.ranks, text.models, {}, text.seconds, text.flat_seconds, {}};
  try {
    for (const std::string& setting : text.settings)
      placement.settings.push_back(setting_of(setting));
    placement.identity = identity_of(text.identity);
  } catch (const Error& error) {
    TAPER_FAIL(ExitCode::kBadInput, path_text(path) << " is no plan (" << error.what()
                                                    << "); make it again with taper plan");
  }
  return placement;
}

void apply_placement_file(param::ParamFile& file) {
  PlacementOptions options;
  param::Schema schema;
  auto s = schema.section("Placement");
  s.choice("Strategy", options.strategy, "", named_placement_strategies());
  s.text("File", options.file, "");
  (void)schema.read_and_list_problems(file);  // of all else, which this schema does not know
  if (options.strategy != PlacementStrategy::kPlan || options.file.empty()) return;
  for (const auto& [path, value] : read_placement_file(options.file).settings)
    file.set_default(path, value, std::string(kFile) + " " + options.file);
}

void require_placement_ranks(const std::filesystem::path& path, const PlacementFile& placement,
                             int ranks) {
  TAPER_VALIDATE(placement.ranks == ranks, kFile << " " << path_text(path) << " is a plan for "
                                                 << count_text(placement.ranks, "rank")
                                                 << " (there are " << ranks << ")" << kAdvice);
}

void require_fitting_placement(const std::filesystem::path& path, const PlacementFile& placement,
                               int ranks, const std::vector<std::string>& models,
                               const ProfileIdentity& here) {
  require_placement_ranks(path, placement, ranks);
  TAPER_VALIDATE(placement.models == models, kFile << " " << path_text(path)
                                                   << " is a plan for the models "
                                                   << join(placement.models) << " (this run has "
                                                   << join(models) << ")" << kAdvice);
  const ProfileMatch match = compare_identity(placement.identity, here);
  TAPER_VALIDATE(match.refusals.empty(),
                 kFile << " " << path_text(path)
                       << " is a plan for another run: " << join(match.refusals, "; ") << kAdvice);
  for (const std::string& warning : match.warnings) TAPER_WARN(path_text(path) << ": " << warning);
}

}  // namespace taper
