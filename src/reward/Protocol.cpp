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
  return {WorkerAnswer::Meaning::kNonsense, {}, problem};
}

WorkerAnswer refusal(const std::string& problem) {
  return {WorkerAnswer::Meaning::kError, {}, problem};
}

// A number that training can use; NaN for any other value, and for none.
double number_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return NAN;
  const double value = found->get<double>();
  return std::isfinite(static_cast<float>(value)) ? value : NAN;
}

WorkerAnswer read_answer(std::string_view line, std::int64_t id,
                         const std::vector<std::string>& components) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return nonsense(
        "wrote " + shown(line) +
        ", which is not a JSON object (write only answers to standard output, everything "
        "else to standard error)");
  const auto found = json.find("id");
  if (found == json.end() || !found->is_number_integer() || found->get<std::int64_t>() != id)
    return nonsense("answered " + shown(line) + " to the request of id " + std::to_string(id));
  if (const auto error = json.find("error"); error != json.end() && !error->is_null())
    return refusal("reported: " +
                   printable(error->is_string() ? error->get<std::string>() : error->dump()));
  WorkerAnswer answer{WorkerAnswer::Meaning::kFigures, {number_of(json, "score")}, ""};
  if (std::isnan(answer.figures.front()))
    return refusal("answered " + shown(line) + ", which has neither a finite 'score' nor 'error'");
  const auto parts = json.find("components");
  for (const std::string& name : components) {
    const bool there = parts != json.end() && parts->is_object();
    answer.figures.push_back(there ? number_of(*parts, name) : NAN);
    if (std::isnan(answer.figures.back()))
      return refusal("answered " + shown(line) + ", which has no finite '" + name +
                     "' in 'components'");
  }
  return answer;
}

}  // namespace

std::string request_members(const std::string& reward, const JudgedResponse& r) {
  OrderedJson json;
  json["reward"] = reward;
  json["prompt"] = r.prompt;
  json["response"] = r.response;
  json["ground_truth"] = r.ground_truth;
  json["data_source"] = r.data_source;
  json["extra_info"] = r.extra_info.empty() ? OrderedJson() : OrderedJson::parse(r.extra_info);
  json["prompt_tokens"] = r.prompt_tokens;
  json["response_tokens"] = r.response_tokens;
  json["finish"] = to_string(r.finish);
  json["index"] = r.id.prompt;
  json["sample"] = r.id.sample;
  const std::string object = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return object.substr(1, object.size() - 2);
}

AnswerReader answer_reader(const std::vector<std::string>& components) {
  return [components](std::string_view line, std::int64_t id) {
    return read_answer(line, id, components);
  };
}

}  // namespace taper
