// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardOptions.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// The kinds that are rules.
constexpr std::pair<RewardKind, RewardRule> kRules[] = {
    {RewardKind::kTask, RewardRule::kTask},
    {RewardKind::kExact, RewardRule::kExact},
    {RewardKind::kGsm8kStrict, RewardRule::kGsm8kStrict},
    {RewardKind::kGsm8kFlexible, RewardRule::kGsm8kFlexible},
    {RewardKind::kBoxed, RewardRule::kBoxed}};

bool is_name(const std::string& text) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.find_first_not_of(kAllowed) == std::string::npos;
}

bool has_twice(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

void check_format(const RewardOptions& o, const std::string& path, std::vector<std::string>& list) {
  if (o.format.markers.empty())
    list.push_back(path +
                   "/Markers is not set (the texts that a response must have, in their "
                   "order, e.g. [<think>, </think>]); set it");
  for (const std::string& marker : o.format.markers)
    if (marker.empty())
      list.push_back(path + "/Markers has an empty text (any response has it); remove it");
  if (has_twice(o.format.markers))
    list.push_back(path +
                   "/Markers has a text twice (a response must contain each exactly once); remove "
                   "one");
}

void check_command(const RewardOptions& o, const std::string& path,
                   std::vector<std::string>& list) {
  if (o.command.command.empty() || o.command.command.front().empty())
    list.push_back(path +
                   "/Command is not set (a program and its arguments, e.g. [python3, "
                   "judge.py]); set it");
  for (const std::string& name : o.command.components)
    if (!is_name(name))
      list.push_back(path + "/Components has '" + name +
                     "' (names are of letters, digits, - and _); rename it");
  if (has_twice(o.command.components))
    list.push_back(path + "/Components has a name twice (each names one figure); remove one");
}

void check_adaptive_timeout(const RewardOptions& o, const std::string& path,
                            std::vector<std::string>& list) {
  const AdaptiveTimeoutOptions& adaptive = o.adaptive_timeout;
  if (!adaptive.on) return;
  const std::string section = path + "/Adaptive Timeout", most = format_text("%g", adaptive.most);
  if (adaptive.least > adaptive.most)
    list.push_back(section + "/Least is " + format_text("%g", adaptive.least) + ", but " + section +
                   "/Most is " + most + "; lower Least or raise Most");
  if (adaptive.most > o.command.timeout)
    list.push_back(section + "/Most is " + most + ", but no answer may take longer than " + path +
                   "/Timeout, " + format_text("%g", o.command.timeout) +
                   "; lower Most or raise Timeout");
  if (o.command.on_error == OnError::kFail)
    list.push_back(section + " cuts answers, and with " + path +
                   "/On Error fail the first one ends the job; set On Error to zero or drop");
}

void check_shaping(const RewardOptions& o, const std::string& path,
                   std::vector<std::string>& list) {
  const auto require = [&](bool good, const char* key, const char* wanted) {
    if (!good) list.push_back(path + "/" + key + " must " + wanted);
  };
  if (o.kind == RewardKind::kLength) {
    require(o.length.target >= 0, "Target", "not be negative");
    require(o.length.per_token >= 0, "Per Token", "not be negative");
    require(o.length.lowest <= 0, "Lowest", "not be positive");
  } else if (o.kind == RewardKind::kOverlong) {
    require(o.overlong.limit >= 0, "Limit", "not be negative (0 is the longest response)");
    require(o.overlong.buffer >= 1, "Buffer", "be positive (the penalty grows over it)");
    require(o.overlong.factor >= 0, "Factor", "not be negative");
  } else if (o.kind == RewardKind::kRepetition) {
    require(o.repetition.n >= 1, "N", "be positive (tokens of an n-gram)");
    require(o.repetition.penalty >= 0, "Penalty", "not be negative");
  }
}

}  // namespace

std::vector<std::pair<std::string, RewardKind>> named_reward_kinds() {
  std::vector<std::pair<std::string, RewardKind>> kinds;
  for (const auto& [name, rule] : named_reward_rules()) kinds.emplace_back(name, kind_of(rule));
  kinds.insert(kinds.end(), {{"format", RewardKind::kFormat},
                             {"length", RewardKind::kLength},
                             {"overlong", RewardKind::kOverlong},
                             {"repetition", RewardKind::kRepetition},
                             {"command", RewardKind::kCommand},
                             {"model", RewardKind::kModel}});
  return kinds;
}

std::optional<RewardRule> rule_of(RewardKind kind) {
  for (const auto& [known, rule] : kRules)
    if (known == kind) return rule;
  return std::nullopt;
}

RewardKind kind_of(RewardRule rule) {
  for (const auto& [kind, known] : kRules)
    if (known == rule) return kind;
  return RewardKind::kNone;
}

bool is_shaping(RewardKind kind) {
  return kind == RewardKind::kLength || kind == RewardKind::kOverlong ||
         kind == RewardKind::kRepetition;
}

std::vector<std::string> RewardOptions::problems() const {
  std::vector<std::string> list;
  const std::string path = "Rewards/" + name;
  if (!is_name(name))
    list.push_back(path +
                   " has a name that metrics and files cannot have (letters, digits, - and "
                   "_ are allowed); rename it");
  if (kind == RewardKind::kNone) {
    std::vector<std::string> known;
    for (const auto& [text, unused] : named_reward_kinds()) known.push_back(text);
    list.push_back(path + "/Kind is not set (one of " + join(known) + "); set it");
  }
  if (kind == RewardKind::kFormat) check_format(*this, path, list);
  if (is_shaping(kind)) check_shaping(*this, path, list);
  if (kind == RewardKind::kCommand) {
    check_command(*this, path, list);
    check_adaptive_timeout(*this, path, list);
  }
  if (kind == RewardKind::kModel && model.directory.empty())
    list.push_back(path +
                   "/Directory is not set (the directory of a reward model, as taper reward-model "
                   "makes it); set it");
  return list;
}

std::vector<std::string> reward_names(const std::vector<RewardOptions>& rewards) {
  std::vector<std::string> names;
  for (const RewardOptions& r : rewards) {
    names.push_back(r.name);
    if (r.kind == RewardKind::kCommand)
      for (const std::string& part : r.command.components) names.push_back(r.name + "/" + part);
  }
  return names;
}

std::size_t reward_index(const std::vector<RewardOptions>& rewards, const std::string& name) {
  const std::vector<std::string> names = reward_names(rewards);
  const auto found = std::find(names.begin(), names.end(), name);
  TAPER_EXPECT(found != names.end());
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace taper
