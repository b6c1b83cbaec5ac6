// SPDX-License-Identifier: Apache-2.0
#include "study/Calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "simulate/Roofline.hpp"

namespace taper {
namespace {

void require_same_shape(const ModelDescription& model, const LatencyProfile& measured) {
  const std::pair<const char*, int> shape[] = {
      {"layers", model.layers},     {"hidden", model.hidden},      {"heads", model.heads},
      {"kv_heads", model.kv_heads}, {"head_dim", model.head_size}, {"intermediate", model.mlp},
      {"vocab", model.vocabulary}};
  for (const auto& [name, value] : shape) {
    const auto at = measured.identity.model.find(name);
    const std::string here = std::to_string(value);
    TAPER_VALIDATE(at != measured.identity.model.end() && at->second == here,
                   "the profile is of a model with "
                       << name << " "
                       << (at == measured.identity.model.end() ? "unknown" : at->second)
                       << " (described: " << here << "); describe the model that was measured");
  }
}

double at(const std::vector<double>& ascending, double share) {
  const double last = static_cast<double>(ascending.size()) - 1;
  return ascending.empty() ? 0 : ascending[static_cast<std::size_t>(std::lround(share * last))];
}

}  // namespace

double StepErrors::quantile(double share) const {
  return at(errors, share);
}

double StepErrors::absolute_quantile(double share) const {
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  std::sort(sizes.begin(), sizes.end());
  return at(sizes, share);
}

std::vector<StepErrors> calibrate(const MachineDescription& machine, const ModelDescription& model,
                                  const LatencyProfile& measured) {
  require_same_shape(model, measured);
  TAPER_VALIDATE(machine.ranks == measured.ranks,
                 "Machine/Ranks is " << machine.ranks << " (the profile was measured on "
                                     << measured.ranks << "); describe the machine measured");
  std::map<std::pair<bool, int>, StepErrors> kinds;
  for (const StepSample& s : measured.steps) {
    const bool prompts = s.new_tokens > s.sequences;
    StepErrors& kind =
        kinds.try_emplace({prompts, s.tp}, StepErrors{s.tp, prompts, {}}).first->second;
    const double ns =
        step_ns(machine, model, s.tp, {s.new_tokens, s.sequences, static_cast<double>(s.context)});
    kind.errors.push_back(ns / static_cast<double>(s.time_ns) - 1);
  }
  std::vector<StepErrors> list;
  for (auto& [key, kind] : kinds) {
    std::sort(kind.errors.begin(), kind.errors.end());
    list.push_back(std::move(kind));
  }
  return list;
}

std::string to_table(const std::vector<StepErrors>& errors) {
  std::string table = format_text("%-8s %3s %6s %8s %8s %8s %10s %10s\n", "steps", "TP", "points",
                                  "10 %", "median", "90 %", "abs. 50 %", "abs. 90 %");
  for (const StepErrors& e : errors)
    table += format_text("%-8s %3d %6zu %+7.1f%% %+7.1f%% %+7.1f%% %9.1f%% %9.1f%%\n",
                         e.prompts ? "prompts" : "decode", e.tp, e.errors.size(),
                         100 * e.quantile(0.1), 100 * e.quantile(0.5), 100 * e.quantile(0.9),
                         100 * e.absolute_quantile(0.5), 100 * e.absolute_quantile(0.9));
  return table + "\ndescribed / measured - 1: its quantiles, and those of its absolute value\n";
}

}  // namespace taper
