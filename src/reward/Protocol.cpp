// SPDX-License-Identifier: Apache-2.0
#include "reward/Protocol.hpp"

#include <cmath>

#include "base/Printable.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

std::string shown(std::string_view line) {
  constexpr std::size_t kMost = 200;
  return "'" + printable(line.substr(0, kMost)) + (line.size() > kMost ? "...'" : "'");
}

WorkerAnswer nonsense(const std::string& problem) {
  return {WorkerAnswer::Meaning::kNonsense, 0.0, {}, problem};
}

WorkerAnswer refusal(const std::string& problem) {
  return {WorkerAnswer::Meaning::kError, 0.0, {}, problem};
}

// A number that training can use; NaN for any other value, and for none.
double number_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return NAN;
  const double value = found->get<double>();
  return std::isfinite(static_cast<float>(value)) ? value : NAN;
}

}  // namespace

std::string request_line(std::int64_t id, const std::string& reward, const JudgedResponse& r) {
  OrderedJson json;
  json["id"] = id;
  json["reward"] = reward;
  json["prompt"] = r.prompt;
  json["response"] = r.response;
  json["ground_truth"] = r.ground_truth;
  json["data_source"] = r.data_source;
  json["extra_info"] = r.extra_info.empty() ? OrderedJson() : OrderedJson::parse(r.extra_info);
  json["prompt_tokens"] = r.prompt_tokens;
  json["response_tokens"] = r.response_tokens;
  json["finish"] = to_string(r.finish);
  json["index"] = r.index;
  json["sample"] = r.sample;
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

WorkerAnswer read_answer(std::string_view line, std::int64_t id,
                         const std::vector<std::string>& components) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return nonsense("wrote " + shown(line) +
                    ", which is no JSON object (standard output is for answers alone, all else "
                    "belongs on standard error)");
  const auto found = json.find("id");
  if (found == json.end() || !found->is_number_integer() || found->get<std::int64_t>() != id)
    return nonsense("answered " + shown(line) + " to the request of id " + std::to_string(id));
  if (const auto error = json.find("error"); error != json.end() && !error->is_null())
    return refusal("reported: " +
                   printable(error->is_string() ? error->get<std::string>() : error->dump()));
  WorkerAnswer answer{WorkerAnswer::Meaning::kScore, number_of(json, "score"), {}, ""};
  if (std::isnan(answer.score))
    return refusal("answered " + shown(line) + ", which has neither a finite 'score' nor 'error'");
  const auto parts = json.find("components");
  for (const std::string& name : components) {
    const bool there = parts != json.end() && parts->is_object();
    answer.components.push_back(there ? number_of(*parts, name) : NAN);
    if (std::isnan(answer.components.back()))
      return refusal("answered " + shown(line) + ", which has no finite '" + name +
                     "' in 'components'");
  }
  return answer;
}

}  // namespace taper
