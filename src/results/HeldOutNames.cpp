// SPDX-License-Identifier: Apache-2.0
#include "results/HeldOutNames.hpp"

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr const char* kHeldOut = "val/";
constexpr const char* kFinal = "final/";
constexpr const char* kFinalRewards = "val/final/reward";
constexpr const char* kAvg = "avg@";
constexpr const char* kPass = "pass@";
constexpr const char* kMaj = "maj@";

// What stands in `text` after `start`; nothing if it does not begin with it.
std::optional<std::string> behind(const std::string& start, const std::string& text) {
  if (!text.starts_with(start)) return std::nullopt;
  return text.substr(start.size());
}

}  // namespace

std::string avg_figure(int k) {
  return kAvg + std::to_string(k);
}

std::string pass_figure(int k) {
  return kPass + std::to_string(k);
}

std::string maj_figure(int k) {
  return kMaj + std::to_string(k);
}

bool HeldOutName::is_mean_score() const {
  return source == HeldOutSource::kPlainSet ||
         (source == HeldOutSource::kNamedSet && figure.starts_with(kAvg));
}

std::string to_string(const HeldOutName& name) {
  switch (name.source) {
    case HeldOutSource::kPlainSet:
      return name.is_final ? kPlainFinalScore : kPlainHeldOutScore;
    case HeldOutSource::kNamedSet:
      return kHeldOut + name.set + "/" + (name.is_final ? kFinal : "") + name.figure;
    case HeldOutSource::kRewards:
      break;
  }
  return std::string(name.is_final ? kFinalRewards : kHeldOutRewards) + "/" + name.figure;
}

std::optional<HeldOutName> parse_held_out_name(const std::string& name) {
  if (name == kPlainHeldOutScore || name == kPlainFinalScore)
    return HeldOutName{HeldOutSource::kPlainSet, "", "", name == kPlainFinalScore};
  if (const auto figure = behind(std::string(kHeldOutRewards) + "/", name))
    return HeldOutName{HeldOutSource::kRewards, "", *figure, false};
  if (const auto figure = behind(std::string(kFinalRewards) + "/", name))
    return HeldOutName{HeldOutSource::kRewards, "", *figure, true};
  const auto path = behind(kHeldOut, name);
  const auto slash = path ? path->find('/') : std::string::npos;
  if (slash == std::string::npos || is_taken_set_name(path->substr(0, slash))) return std::nullopt;
  const std::string figure = path->substr(slash + 1);
  const auto of_end = behind(kFinal, figure);
  return HeldOutName{HeldOutSource::kNamedSet, path->substr(0, slash), of_end.value_or(figure),
                     of_end.has_value()};
}

std::string held_out_name(const std::string& set, const std::string& figure) {
  return to_string(HeldOutName{HeldOutSource::kNamedSet, set, figure});
}

bool is_taken_set_name(const std::string& set) {
  return set == "score" || set == "final" || set == "reward";
}

std::string final_name(const std::string& name) {
  auto parts = parse_held_out_name(name);
  TAPER_INSIST(parts, name << " is the name of no held-out figure");
  parts->is_final = true;
  return to_string(*parts);
}

bool is_final_name(const std::string& name) {
  const auto parts = parse_held_out_name(name);
  return parts && parts->is_final;
}

std::optional<MetricMeaning> held_out_meaning(const std::string& name) {
  const auto parts = parse_held_out_name(name);
  if (!parts || parts->source != HeldOutSource::kNamedSet) return std::nullopt;
  const std::string when =
      parts->is_final ? ", after the last iteration of the run" : ", before the update";
  const auto is = [&](const char* figure) { return parts->figure.starts_with(figure); };
  if (is(kAvg)) return MetricMeaning{name, "1", "mean score of a held-out set" + when};
  if (is(kPass))
    return MetricMeaning{
        name, "1",
        "estimated share of held-out prompts with a right response among that many" + when};
  if (is(kMaj))
    return MetricMeaning{name, "1",
                         "share of held-out prompts whose most frequent answer is right" + when};
  return MetricMeaning{name, "token", "mean length of the responses to a held-out set" + when};
}

}  // namespace taper
