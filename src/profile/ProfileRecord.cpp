// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileRecord.hpp"

#include <exception>
#include <string>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Json.hpp"
#include "profile/RunIdentity.hpp"

namespace taper {
namespace {

constexpr int kFormat = 1;

Json to_json(const ProfilePoint& p) {
  return {{"tp", p.tp},
          {"pair", static_cast<int>(p.pair)},
          {"tokens", p.shape.tokens},
          {"batch", p.shape.batch},
          {"context", p.shape.context},
          {"drafted", p.shape.drafted},
          {"visits_ns", p.visits}};
}

ProfilePoint point_of(const Json& json) {
  ProfilePoint p;
  json.at("tp").get_to(p.tp);
  p.pair = json.at("pair").get<int>() == 0 ? PairClass::kSameNode : PairClass::kOtherNode;
  json.at("tokens").get_to(p.shape.tokens);
  json.at("batch").get_to(p.shape.batch);
  json.at("context").get_to(p.shape.context);
  p.shape.drafted = json.value("drafted", 0);  // older ones have none
  json.at("visits_ns").get_to(p.visits);
  return p;
}

}  // namespace

std::filesystem::path partial_path(const std::filesystem::path& output) {
  auto path = output;
  path += ".partial";
  return path;
}

void save_partial(const std::filesystem::path& output, const ProfileRecord& record) {
  Json json{{"format", kFormat},           {"identity", to_lines(record.identity)},
            {"settings", record.settings}, {"seconds_spent", record.seconds_spent},
            {"budget", record.budget},     {"first_round", record.first_round},
            {"ended", record.ended},       {"points", Json::array()}};
  for (const auto& p : record.points) json["points"].push_back(to_json(p));
  write_json_file(partial_path(output), json, -1);
}

ProfileRecord load_partial(const std::filesystem::path& output) {
  const auto path = partial_path(output);
  const Json json = read_json_file(path);
  try {
    TAPER_VALIDATE(json.at("format").get<int>() == kFormat, "its format is different");
    ProfileRecord record;
    record.identity = identity_from_lines(json.at("identity").get<std::string>());
    json.at("settings").get_to(record.settings);
    json.at("seconds_spent").get_to(record.seconds_spent);
    json.at("budget").get_to(record.budget);
    record.first_round = json.value("first_round", 0.0);
    record.ended = json.value("ended", false);
    for (const auto& p : json.at("points")) record.points.push_back(point_of(p));
    return record;
  } catch (const std::exception& e) {
    TAPER_FAIL(ExitCode::kBadInput, path_text(path) << " is not a partial profile (" << e.what()
                                                    << "); --fresh starts over");
  }
}

void require_same_identity(const std::filesystem::path& name, Completeness completeness,
                           const ProfileIdentity& found, const ProfileIdentity& here) {
  ProfileMatch match = compare_identity(found, here);
  auto& problems = match.refusals;
  if (completeness == Completeness::kPartial)
    problems.insert(problems.end(), match.warnings.begin(), match.warnings.end());
  else
    for (const auto& text : match.warnings) TAPER_WARN(path_text(name) << ": " << text);
  TAPER_VALIDATE(problems.empty(), path_text(name)
                                       << " cannot be resumed: " << join(problems, "; ")
                                       << "; start over with --fresh, or name another --output");
}

}  // namespace taper
