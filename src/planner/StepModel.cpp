// SPDX-License-Identifier: Apache-2.0
#include "planner/StepModel.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/Bytes.hpp"
#include "base/Error.hpp"

namespace taper {
namespace {

constexpr std::int64_t kContextUnit = 16;
constexpr std::int64_t kFactorOne = 1 << 20, kInRatio = kFactorOne / kRatioOne;
constexpr std::int64_t kScaleMemory = 4;  // generations that count, the profile before the first

// y at x on the line through two points.
std::int64_t linear(std::int64_t x, std::int64_t x0, std::int64_t y0, std::int64_t x1,
                    std::int64_t y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

// The same beyond the second point, where time does not fall.
std::int64_t beyond(std::int64_t x, std::int64_t x0, std::int64_t y0, std::int64_t x1,
                    std::int64_t y1) {
  return y1 + std::max<std::int64_t>(0, y1 - y0) * (x - x1) / (x1 - x0);
}

int median(std::vector<int>& list) {
  const auto middle = list.begin() + std::ssize(list) / 2;
  std::nth_element(list.begin(), middle, list.end());
  return *middle;
}

std::int64_t bounded(std::int64_t factor) {
  return std::clamp(factor, kFactorOne * 3 / 4, kFactorOne * 4 / 3);
}

}  // namespace

std::int64_t StepCurve::Line::at(std::int64_t context) const {
  if (knots.size() == 1 || context <= knots.front().context) return knots.front().ns;
  std::size_t i = 1;
  while (i + 1 < knots.size() && knots[i].context < context) ++i;
  const Knot& a = knots[i - 1];
  const Knot& b = knots[i];
  return context <= b.context ? linear(context, a.context, a.ns, b.context, b.ns)
                              : beyond(context, a.context, a.ns, b.context, b.ns);
}

StepCurve::StepCurve(std::span<const StepSample> samples, std::span<const StepSample> verify) {
  token_shares_.fill(kRatioOne);
  factors_.fill(kRatioOne);
  std::map<int, std::vector<Knot>> lines;
  for (const StepSample& s : samples)
    if (s.decodes())
      lines[s.sequences].push_back({s.context * kContextUnit / s.sequences, s.time_ns});
  TAPER_VALIDATE(!lines.empty(), "a step model needs at least one decode step");
  for (auto& [sequences, knots] : lines) {
    std::sort(knots.begin(), knots.end(),
              [](const Knot& a, const Knot& b) { return a.context < b.context; });
    // A sum that is no multiple of the batch may round onto a neighbor.
    const auto same = [](const Knot& a, const Knot& b) { return a.context == b.context; };
    knots.erase(std::unique(knots.begin(), knots.end(), same), knots.end());
    lines_.push_back({sequences, std::move(knots)});
  }
  std::vector<std::int64_t> contexts;
  for (const Line& line : lines_)
    for (const Knot& k : line.knots) contexts.push_back(k.context);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  for (int b = 0; b < kTable; ++b) {
    Line line{b, {}};
    for (const std::int64_t c : contexts) line.knots.push_back({c, between(lines_, b, c)});
    table_.push_back(std::move(line));
  }
  std::map<std::int64_t, std::vector<Knot>> extra;  // by rows
  for (const StepSample& s : samples)
    if (s.new_tokens > s.sequences)
      extra[s.new_tokens - s.sequences].push_back(
          {s.context * kContextUnit / s.sequences,
           std::max<std::int64_t>(0, s.time_ns - decode_ns(s.sequences, s.context))});
  prefill_.push_back({0, {{0, 0}}});
  for (auto& [rows, knots] : extra) prefill_.push_back({rows, averaged(std::move(knots))});
  if (extra.empty()) {  // a row of a prompt costs what a row of the batch costs
    const std::int64_t c = contexts.front();
    prefill_.push_back(
        {1024, {{c, std::max<std::int64_t>(0, between(lines_, 1025, c) - between(lines_, 1, c))}}});
  }
  add_verified(verify);
}

void StepCurve::add_verified(std::span<const StepSample> verify) {
  std::map<int, std::map<std::int64_t, std::vector<Knot>>> extra;  // by sequences, by guesses
  for (const StepSample& s : verify)
    extra[s.sequences][s.new_tokens - s.sequences].push_back(
        {s.context * kContextUnit / s.sequences,
         std::max<std::int64_t>(0, s.time_ns - decode_ns(s.sequences, s.context))});
  for (auto& [sequences, lines] : extra) {
    Verified& v = verified_.emplace_back(Verified{sequences, {{0, {{0, 0}}}}});
    for (auto& [drafted, knots] : lines) v.lines.push_back({drafted, averaged(std::move(knots))});
  }
}

// Several batches may have measured the same rows at the same context.
std::vector<StepCurve::Knot> StepCurve::averaged(std::vector<Knot> knots) {
  std::sort(knots.begin(), knots.end(),
            [](const Knot& a, const Knot& b) { return a.context < b.context; });
  std::vector<Knot> list;
  for (std::size_t i = 0; i < knots.size();) {
    std::int64_t sum = 0;
    std::size_t j = i;
    for (; j < knots.size() && knots[j].context == knots[i].context; ++j) sum += knots[j].ns;
    list.push_back({knots[i].context, sum / static_cast<std::int64_t>(j - i)});
    i = j;
  }
  return list;
}

std::int64_t StepCurve::between(const std::vector<Line>& lines, std::int64_t rows,
                                std::int64_t context) {
  if (lines.size() == 1 || rows <= lines.front().rows) return lines.front().at(context);
  std::size_t i = 1;
  while (i + 1 < lines.size() && lines[i].rows < rows) ++i;
  const Line& a = lines[i - 1];
  const Line& b = lines[i];
  const auto law = rows <= b.rows ? linear : beyond;
  return law(rows, a.rows, a.at(context), b.rows, b.at(context));
}

std::int64_t StepCurve::measured_ns(int sequences, std::int64_t context) const {
  const std::int64_t mean = context * kContextUnit / sequences;
  return sequences < kTable ? table_[sequences].at(mean) : between(lines_, sequences, mean);
}

std::int64_t StepCurve::decode_ns(int sequences, std::int64_t context) const {
  if (sequences <= 0) return 0;
  return std::max<std::int64_t>(1, scaled(sequences, measured_ns(sequences, context)));
}

// Between two knots times are those in the middle: a long way may cross several.
std::int64_t StepCurve::tokens_ns(int sequences, std::int64_t context, std::int64_t tokens) const {
  if (sequences <= 0 || sequences >= kTable)
    return tokens * token_ns(sequences, context + sequences * tokens / 2);
  const std::vector<Knot>& knots = table_[sequences].knots;
  const std::int64_t mean = context * kContextUnit / sequences;
  std::int64_t ns = 0;
  std::size_t next = 0;
  for (std::int64_t done = 0; done < tokens;) {
    const std::int64_t here = mean + done * kContextUnit;
    while (next < knots.size() && knots[next].context <= here) ++next;
    std::int64_t count = tokens - done;
    if (next < knots.size())
      count = std::min(count, (knots[next].context - here + kContextUnit - 1) / kContextUnit);
    ns += count * token_ns(sequences, context + sequences * (done + count / 2));
    done += count;
  }
  return ns;
}

std::int64_t StepCurve::prefill_ns(std::int64_t rows, std::int64_t context) const {
  if (rows <= 0) return 0;
  return between(prefill_, rows, context * kContextUnit) * prompt_factor_ >> kRatioBits;
}

// Between batches that were measured, at the same number of guesses; outside, as at the nearest.
std::int64_t StepCurve::added_ns(int sequences, int drafted, std::int64_t context) const {
  if (sequences <= 0 || drafted <= 0) return 0;
  const std::int64_t mean = context / sequences;
  if (verified_.empty())
    return std::max<std::int64_t>(0,
                                  measured_ns(sequences + drafted, mean * (sequences + drafted)) -
                                      measured_ns(sequences, mean * sequences));
  const auto extra = [&](const Verified& v) {
    return between(v.lines, drafted, mean * kContextUnit);
  };
  std::size_t i = 0;
  while (i < verified_.size() && verified_[i].sequences < sequences) ++i;
  std::int64_t ns = 0;
  if (i == 0 || i == verified_.size()) {
    ns = extra(verified_[i == 0 ? 0 : i - 1]);
  } else {
    const Verified &a = verified_[i - 1], &b = verified_[i];
    ns = linear(sequences, a.sequences, extra(a), b.sequences, extra(b));
  }
  return std::max<std::int64_t>(0, ns);
}

std::int64_t StepCurve::verify_ns(int sequences, int drafted, std::int64_t context) const {
  return scaled(sequences, added_ns(sequences, drafted, context));
}

// With drafts cut at a length, a step of n sequences has n (1 + d) rows, d the guesses of a
// sequence, and gives n (1 + a) tokens, a the right ones: its time divided by 1 + a is that of a
// token. A draft model has a round for each token of a draft: the longer they are, the more of its
// time they take. Of a step's time at the middle of the contexts, without what has been learned of
// the machine: a share is the same before and after.
std::int64_t StepCurve::share_of(int sequences) const {
  const DraftShares shares = drafts_.shares(sequences);
  const std::vector<Knot>& knots = table_[1].knots;
  const std::int64_t context = knots[knots.size() / 2].context * sequences / kContextUnit;
  const std::int64_t plain = std::max<std::int64_t>(1, measured_ns(sequences, context));
  const int all = std::accumulate(shares.drafted.begin(), shares.drafted.end(), 0);
  std::int64_t best = kRatioOne, drafted = 0, accepted = 0;
  for (int i = 0; i < DraftShares::kLengths && shares.drafted[i] > 0; ++i) {
    drafted += shares.drafted[i];
    accepted += shares.accepted[i];
    const auto guesses = static_cast<int>((sequences * drafted + DraftShares::kShareOne - 1) /
                                          DraftShares::kShareOne);
    std::int64_t ns = plain + added_ns(sequences, guesses, context);
    ns += ns * shares.model / kRatioOne * drafted / all;
    best = std::min(best, ns * kRatioOne / plain * DraftShares::kShareOne /
                              (DraftShares::kShareOne + accepted));
  }
  return best;
}

void StepCurve::set_drafts(const DraftTable& drafts) {
  drafts_ = drafts;
  for (int i = 0; i < kLengthBuckets; ++i)
    token_shares_[i] = drafts.empty() ? kRatioOne : share_of(i == 0 ? 1 : 3 << (i - 1));
}

StepModel::StepModel(const LatencyProfile& profile) : ranks_per_node_(profile.ranks_per_node) {
  std::map<std::pair<int, PairClass>, std::vector<StepSample>> samples, verify;
  for (const StepSample& s : profile.steps) samples[{s.tp, s.pair}].push_back(s);
  for (const StepSample& s : profile.verify) verify[{s.tp, s.pair}].push_back(s);
  for (const auto& [key, list] : samples)  // the other class of a degree stands for one without
    if (std::any_of(list.begin(), list.end(), std::mem_fn(&StepSample::decodes)))
      curves_.emplace(key, StepCurve(list, verify[key]));
}

void StepModel::set_drafts(const DraftTable& drafts) {
  drafts_ = drafts;
  for (auto& [key, curve] : curves_) curve.set_drafts(drafts_);
}

const StepCurve& StepModel::curve(int tp, PairClass pair) const {
  auto at = curves_.find({tp, pair});
  if (at == curves_.end())
    at = curves_.find(
        {tp, pair == PairClass::kSameNode ? PairClass::kOtherNode : PairClass::kSameNode});
  TAPER_VALIDATE(
      at != curves_.end(),
      "the profile has no tensor-parallel degree "
          << tp << " (its step times cannot be predicted); measure it again with taper profile");
  return at->second;
}

// What slows some steps mostly slows them all: the common factor follows within a generation, what
// steps have of their own over many. Otherwise those in use would look slow beside those that
// nothing was seen of. By the number of sequences, since it is not the same for all: a replica
// whose neighbors have nothing left to do has caches and memory for itself. A factor of the degree
// alone would compare the large batches of small groups with the small ones of large groups.
void StepModel::observe(std::span<const Speed> replicas) {
  std::vector<int> all;
  std::map<std::pair<int, int>, std::vector<int>> alike;
  for (const Speed& r : replicas) {
    if (r.ratio <= 0 || r.sequences <= 0) continue;
    all.push_back(std::clamp(r.ratio, kRatioOne / 2, 2 * kRatioOne));
    alike[{r.tp, length_bucket(r.sequences)}].push_back(all.back());
  }
  if (all.empty()) return;
  // Medians, so that one disturbed replica does not count for all. Predictions contain the factors
  // learned so far: ratios say how they should change.
  const std::int64_t before = common_;
  common_ = bounded(common_ + (common_ * median(all) / kRatioOne - common_) / 16);
  for (auto& [key, ratios] : alike) {
    std::int64_t& own = own_.try_emplace(key, kFactorOne).first->second;
    const std::int64_t seen = own * median(ratios) / kRatioOne * before / common_;
    own = bounded(own + (seen - own) / 64);
  }
  apply();
}

// How slow all steps are stands in the common factors alone: steps that nothing was seen of are
// taken for average ones.
void StepModel::center() {
  if (own_.empty()) return;
  std::int64_t sum = 0;
  for (const auto& [key, own] : own_) sum += own;
  const std::int64_t mean = sum / std::ssize(own_);
  for (auto& [key, own] : own_) own = bounded(own * kFactorOne / mean);
  for (std::int64_t* factor : {&common_, &scale_}) *factor = bounded(*factor * mean / kFactorOne);
}

void StepModel::begin() {
  common_ = scale_;
  apply();
}

// Steps of snapshots are few and of a moment, the last ones of a small batch: a whole generation
// says better how the machine is today.
void StepModel::learn(std::int64_t measured_ns, std::int64_t expected_ns) {
  if (measured_ns <= 0 || expected_ns <= 0) return;
  const auto ratio =
      std::clamp<std::int64_t>(measured_ns * kRatioOne / expected_ns, kRatioOne / 2, 2 * kRatioOne);
  const std::int64_t seen = scale_ * ratio / kRatioOne;
  generations_ = std::min(generations_ + 1, kScaleMemory - 1);
  scale_ = bounded(scale_ + (seen - scale_) / (generations_ + 1));
  center();
  apply();
}

std::int64_t StepModel::total(int tp, int bucket) const {
  const auto at = own_.find({tp, bucket});
  return at == own_.end() ? common_ : bounded(common_ * at->second / kFactorOne);
}

void StepModel::apply() {
  for (auto& [key, curve] : curves_) {
    StepCurve::Factors factors;
    for (int bucket = 0; bucket < kLengthBuckets; ++bucket)
      factors[bucket] = total(key.first, bucket) / kInRatio;
    curve.set_factors(factors, common_ / kInRatio);
  }
}

int StepModel::scale() const {
  return static_cast<int>(scale_ / kInRatio);
}

int StepModel::factor(int tp, int sequences) const {
  return static_cast<int>(total(tp, length_bucket(sequences)) / kInRatio);
}

std::string StepModel::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(common_);
  out.value(scale_);
  out.value(generations_);
  for (const auto& [key, factor] : own_) {
    out.value(std::int64_t{key.first});
    out.value(std::int64_t{key.second});
    out.value(factor);
  }
  return bytes;
}

void StepModel::load(std::string_view bytes) {
  ByteReader in(bytes);
  const auto common = in.value<std::int64_t>(), scale = in.value<std::int64_t>(),
             generations = in.value<std::int64_t>();
  bool is_whole = common == bounded(common) && scale == bounded(scale) && generations >= 0 &&
                  generations < kScaleMemory;
  std::map<std::pair<int, int>, std::int64_t> own;
  while (!in.done()) {
    const auto tp = in.value<std::int64_t>(), bucket = in.value<std::int64_t>(),
               factor = in.value<std::int64_t>();
    is_whole = is_whole && tp >= 1 && tp <= std::numeric_limits<int>::max() && bucket >= 0 &&
               bucket < kLengthBuckets && factor == bounded(factor);
    own[{static_cast<int>(tp), static_cast<int>(bucket)}] = factor;
  }
  TAPER_VALIDATE(is_whole, "the saved step model is damaged");
  common_ = common;
  scale_ = scale;
  generations_ = generations;
  own_ = std::move(own);
  apply();
}

}  // namespace taper
