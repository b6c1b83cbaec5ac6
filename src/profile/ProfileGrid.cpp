// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileGrid.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

constexpr int kShortContext = 16;  // per sequence, the shortest of the coarse grid: a short prompt
constexpr double kNearest = 1.2;   // points closer than this factor on an axis are one
// Of a line of one batch in the coarse grid: enough to see that times grow faster once keys and
// values no longer stay in caches, which happens between the points if there are three.
constexpr int kLineContexts = 5;
constexpr int kAddedLineContexts = 3, kPromptContexts = 2;

constexpr int kVerifiedBatches[] = {1, 4, 16};

template <class T>
T at_quantile(std::vector<T> values, double p) {
  const auto n = static_cast<double>(values.size());
  const auto k = static_cast<std::size_t>(std::clamp(std::ceil(p * n) - 1.0, 0.0, n - 1.0));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

// The mean, since a generation is a sum of steps and networks make their times skew; a step that
// the machine stalled counts as three median ones.
std::int64_t time_of_visit(const std::vector<std::int64_t>& steps) {
  const std::int64_t most = 3 * at_quantile(steps, 0.5);
  std::int64_t sum = 0;
  for (const std::int64_t ns : steps) sum += std::min(ns, most);
  return sum / static_cast<std::int64_t>(steps.size());
}

std::int64_t median_of_visits(const ProfilePoint& point, std::size_t first, std::size_t stride) {
  std::vector<std::int64_t> times;
  for (std::size_t i = first; i < point.visits.size(); i += stride)
    times.push_back(time_of_visit(point.visits[i]));
  return at_quantile(times, 0.5);
}

int prompt_tokens(const StepSample& s) {
  return s.new_tokens - s.sequences;
}
double mean_context(const StepSample& s) {
  return static_cast<double>(s.context) / s.sequences;
}

bool near(double a, double b) {
  return std::max(a, b) + 1 <= kNearest * (std::min(a, b) + 1);
}

// Batches from 1 in steps of a factor up to and including the largest.
std::vector<int> batches(int largest, int factor) {
  std::vector<int> list;
  for (int b = 1; b < largest; b *= factor) list.push_back(b);
  list.push_back(largest);
  if (list.size() > 2 && near(list[list.size() - 2], largest)) list.erase(list.end() - 2);
  return list;
}

void add_contexts(std::vector<StepShape>& grid, int tokens, int batch, int count,
                  const GridLimits& limits) {
  const std::int64_t most = limits.max_context(tokens, batch);
  if (most < tokens) return;
  const std::int64_t quarter = most / 4;
  const double low = std::max<double>(tokens, std::min<double>(kShortContext * batch, quarter));
  std::set<std::int64_t> contexts;
  for (int i = 0; i < count; ++i)
    contexts.insert(std::clamp<std::int64_t>(
        std::llround(low * std::pow(static_cast<double>(most) / low,
                                    count == 1 ? 0.5 : static_cast<double>(i) / (count - 1))),
        tokens, most));
  for (const std::int64_t context : contexts) grid.push_back({tokens, batch, context});
}

}  // namespace

StepSample summarize(const ProfilePoint& point) {
  TAPER_EXPECT(!point.visits.empty());
  StepSample s;
  s.tp = point.tp;
  s.pair = point.pair;
  s.new_tokens = point.shape.tokens;
  s.sequences = point.shape.batch;
  s.context = point.shape.context;
  s.time_ns = median_of_visits(point, 0, 1);
  std::vector<std::int64_t> steps;
  for (const auto& visit : point.visits) steps.insert(steps.end(), visit.begin(), visit.end());
  s.spread_ns = at_quantile(steps, 0.75) - at_quantile(steps, 0.25);
  s.repeats = static_cast<std::int32_t>(steps.size());
  return s;
}

std::optional<double> repeat_noise(const ProfilePoint& point) {
  if (point.visits.size() < 2) return std::nullopt;
  const auto even = static_cast<double>(median_of_visits(point, 0, 2)),
             odd = static_cast<double>(median_of_visits(point, 1, 2));
  return std::abs(even - odd) / static_cast<double>(median_of_visits(point, 0, 1));
}

double quantile(std::vector<double> values, double p) {
  return values.empty() ? 0.0 : at_quantile(std::move(values), p);
}

std::vector<StepShape> coarse_grid(const GridLimits& limits) {
  std::vector<StepShape> grid;
  for (const int batch : batches(limits.max_batch, 4))
    add_contexts(grid, batch, batch, kLineContexts, limits);
  if (limits.max_tokens < 2) return grid;
  const int most = limits.max_tokens;
  for (const int tokens : std::set<int>{std::max(2, most / 16), std::max(2, most / 4), most})
    add_contexts(grid, tokens, 1, kPromptContexts, limits);
  for (const int batch : std::set<int>{std::max(2, limits.max_batch / 8), limits.max_batch / 2})
    if (batch > 1 && batch < most) add_contexts(grid, most, batch, 1, limits);
  for (const int batch : kVerifiedBatches)
    for (const int drafted : batch == 1 ? std::vector<int>{1, 3, 7} : std::vector<int>{1, 7}) {
      if (batch > limits.max_batch || batch * (1 + drafted) > most) continue;
      std::vector<StepShape> shapes;
      add_contexts(shapes, batch + drafted, batch, 1, limits);
      for (const StepShape& s : shapes)
        grid.push_back({batch * (1 + drafted), batch, s.context, drafted});
    }
  return grid;
}

namespace {

// Piecewise linear through points of ascending x; beyond them it goes on with the last slope.
double interpolate(const std::map<double, double>& points, double x) {
  if (points.size() == 1) return points.begin()->second;
  auto above = points.lower_bound(x);
  if (above == points.begin()) ++above;
  if (above == points.end()) --above;
  const auto below = std::prev(above);
  const double share = (x - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

using Lines = std::map<int, std::map<double, double>>;  // batch -> mean context -> ns

// Time of a decode step: linear in the context on lines of equal batch, linear between the lines.
double decode_ns(const Lines& lines, double batch, double context) {
  std::map<double, double> across;
  for (const auto& [line_batch, line] : lines) across[line_batch] = interpolate(line, context);
  return interpolate(across, batch);
}

template <class Key, class Value>
bool is_inside(const std::map<Key, Value>& points, Key key) {
  return !points.empty() && points.begin()->first < key && key < points.rbegin()->first;
}

}  // namespace

std::vector<PointError> interpolation_errors(const std::vector<StepSample>& samples) {
  Lines lines;
  std::map<int, std::vector<double>> prompts;  // prompt tokens -> ns that they add
  for (const StepSample& s : samples)
    if (s.decodes()) lines[s.sequences][mean_context(s)] = static_cast<double>(s.time_ns);
  if (lines.empty()) return {};
  const auto decode = [&](const StepSample& s) {
    return decode_ns(lines, s.sequences, mean_context(s));
  };
  for (const StepSample& s : samples)
    if (!s.decodes())
      prompts[prompt_tokens(s)].push_back(static_cast<double>(s.time_ns) - decode(s));
  std::map<double, double> added{{0.0, 0.0}};
  for (const auto& [tokens, ns] : prompts)
    added[tokens] = std::accumulate(ns.begin(), ns.end(), 0.0) / static_cast<double>(ns.size());

  std::vector<PointError> errors;
  const auto judge = [&](std::size_t i, GridAxis axis, double predicted) {
    const auto measured = static_cast<double>(samples[i].time_ns);
    errors.push_back({i, axis, std::abs(predicted - measured) / measured});
  };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const StepSample& s = samples[i];
    const double context = mean_context(s);
    if (!s.decodes()) {
      auto others = added;
      if (!is_inside(others, double(prompt_tokens(s)))) continue;
      others.erase(prompt_tokens(s));
      judge(i, GridAxis::kPrompt, decode(s) + interpolate(others, prompt_tokens(s)));
      continue;
    }
    if (auto line = lines.at(s.sequences); is_inside(line, context)) {
      line.erase(context);
      judge(i, GridAxis::kContext, interpolate(line, context));
    }
    if (is_inside(lines, s.sequences)) {
      auto others = lines;
      others.erase(s.sequences);
      judge(i, GridAxis::kBatch, decode_ns(others, s.sequences, context));
    }
  }
  return errors;
}

std::vector<StepShape> refine(const std::vector<StepSample>& samples, const PointError& error,
                              const GridLimits& limits) {
  const StepSample& here = samples[error.point];
  const auto value = [&](const StepSample& s) {
    if (error.axis == GridAxis::kContext) return mean_context(s);
    return static_cast<double>(error.axis == GridAxis::kBatch ? s.sequences : prompt_tokens(s));
  };
  double below = error.axis == GridAxis::kPrompt ? 1.0 : 0.0, above = 0.0;  // 0: none
  for (const StepSample& s : samples) {
    if (s.decodes() != here.decodes()) continue;
    if (error.axis == GridAxis::kContext && s.sequences != here.sequences) continue;
    if (value(s) < value(here)) below = std::max(below, value(s));
    if (value(s) > value(here)) above = above == 0.0 ? value(s) : std::min(above, value(s));
  }
  std::vector<StepShape> fresh;
  for (const double neighbour : {below, above}) {
    const double middle = std::sqrt(neighbour * value(here));
    if (neighbour == 0.0 || near(middle, neighbour) || near(middle, value(here))) continue;
    const int rounded = static_cast<int>(std::lround(middle));
    if (error.axis == GridAxis::kContext)
      fresh.push_back({here.new_tokens, here.sequences, std::llround(middle * here.sequences)});
    else if (error.axis == GridAxis::kBatch)
      add_contexts(fresh, rounded, rounded, kAddedLineContexts, limits);
    else
      add_contexts(fresh, rounded + 1, 1, kPromptContexts, limits);
  }
  return fresh;
}

}  // namespace taper
