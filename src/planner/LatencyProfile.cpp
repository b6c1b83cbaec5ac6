// SPDX-License-Identifier: Apache-2.0
#include "planner/LatencyProfile.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Facts whose bare values say too little, in words.
std::string in_words(const std::string& name, const std::string& value) {
  if (name == "pinned")
    return value == "yes" ? "ranks that are pinned, each to some of the host's cores"
                          : "ranks that are not pinned and may run on all cores of the host";
  if (name == "threads_per_rank")
    return value + (value == "1" ? " thread" : " threads") + " per rank";
  if (name == "waiting")
    return value == "yields" ? "more ranks than cores, which yield while they wait"
                             : "no more ranks than cores, which block while they wait";
  return "";
}

// What to do if a fact differs; empty if nothing but another profile helps.
std::string remedy(const std::string& name) {
  if (name == "pinned")
    return "; start taper profile and the run in the same way: with the same -bind-to or "
           "--cpu-bind option, or both without";
  if (name == "threads_per_rank") return "; start both with the same OMP_NUM_THREADS and binding";
  if (name == "dtype") return "; --dtype of taper profile, Model/Weight Type of runs";
  if (name == "arithmetic") return "; --arithmetic of taper profile, Model/Arithmetic of runs";
  if (name == "kv_dtype") return "; --cache-type of taper profile, Model/Cache Type of runs";
  return "";
}

// One text for each fact that differs.
void compare_facts(const std::string& what, const Facts& profile, const Facts& here,
                   std::vector<std::string>& differences) {
  std::set<std::string> names;
  for (const auto& [name, unused] : profile) names.insert(name);
  for (const auto& [name, unused] : here) names.insert(name);
  const auto value = [](const Facts& facts, const std::string& name) {
    const auto at = facts.find(name);
    if (at != facts.end()) return "'" + at->second + "'";
    return std::string(name == "arithmetic" ? "'f32'" : "nothing");  // which is not written down
  };
  for (const std::string& name : names)
    if (const auto was = value(profile, name), is = value(here, name); was != is) {
      const bool known = profile.contains(name) && here.contains(name);
      const std::string words = known ? in_words(name, profile.at(name)) : "";
      differences.push_back(
          words.empty() ? "the profile was measured with " + what + " " + name + " " + was +
                              " (here it is " + is + remedy(name) + ")"
                        : "the profile was measured on " + words +
                              " (here: " + in_words(name, here.at(name)) + remedy(name) + ")");
    }
}

// All numbers are hashed as 64-bit integers, whatever their members are.
void add(Fingerprint& hash, std::int64_t number) {
  hash.add(number);
}

void add(Fingerprint& hash, PairClass pair) {
  add(hash, static_cast<std::int64_t>(pair));
}

void add(Fingerprint& hash, PassKind kind) {
  add(hash, static_cast<std::int64_t>(kind));
}

void add(Fingerprint& hash, const Facts& facts) {
  add(hash, std::ssize(facts));
  for (const auto& [name, text] : facts) hash.add_text(name).add_text(text);
}

template <class... T>
void add_all(Fingerprint& hash, const T&... values) {
  (add(hash, values), ...);
}

template <class IsPossible>
void add_sample_problems(const std::string& what, const std::vector<StepSample>& samples,
                         const IsPossible& is_possible, std::vector<std::string>& list) {
  std::set<std::tuple<int, int, int, int, std::int64_t>> seen;
  for (const StepSample& s : samples) {
    const std::string name = "the " + what + " sample (TP " + std::to_string(s.tp) + ", " +
                             to_string(s.pair) + ", " + std::to_string(s.new_tokens) +
                             " tokens of " + std::to_string(s.sequences) + " sequences, context " +
                             std::to_string(s.context) + ")";
    if (s.tp < 1 || s.sequences < 1 || !is_possible(s)) list.push_back(name + " is impossible");
    if (s.time_ns <= 0 || s.spread_ns < 0 || s.repeats < 1) list.push_back(name + " has no time");
    if (!seen.insert({s.tp, static_cast<int>(s.pair), s.new_tokens, s.sequences, s.context}).second)
      list.push_back(name + " appears twice");
  }
}

bool is_possible(const PassSample& s) {
  if (s.tp < 1 || s.replicas < 1 || s.time_ns <= 0 || s.spread_ns < 0 || s.repeats < 1)
    return false;
  if (s.kind == PassKind::kUpdate) return s.rows == 0 && s.targets == 0;
  return s.rows >= 1 && s.length >= 1 && s.targets >= 0 && s.targets <= s.rows;
}

}  // namespace

const char* to_string(PassKind kind) {
  switch (kind) {
    case PassKind::kForward:
      return "forward pass";
    case PassKind::kLearn:
      return "forward and backward pass";
    case PassKind::kUpdate:
      break;
  }
  return "optimizer step";
}

const char* to_string(PairClass pair) {
  return pair == PairClass::kSameNode ? "same node" : "other node";
}

ProfileMatch compare_identity(const ProfileIdentity& profile, const ProfileIdentity& here) {
  ProfileMatch match;
  compare_facts("model", profile.model, here.model, match.refusals);
  compare_facts("machine", profile.machine, here.machine, match.refusals);
  compare_facts("transport", profile.transport, here.transport, match.refusals);
  compare_facts("build", profile.build, here.build, match.warnings);
  compare_facts("clock", profile.clock, here.clock, match.warnings);
  return match;
}

std::vector<int> LatencyProfile::degrees() const {
  std::set<int> degrees;
  for (const StepSample& s : steps) degrees.insert(s.tp);
  return {degrees.begin(), degrees.end()};
}

PairClass pair_class(int first, int tp, int ranks_per_node) {
  const int node = std::max(1, ranks_per_node);
  return first / node == (first + tp - 1) / node ? PairClass::kSameNode : PairClass::kOtherNode;
}

PairClass pair_class(int first, int tp, const std::vector<int>& node_of_rank) {
  const auto begin = node_of_rank.begin() + first;
  const bool same = std::all_of(begin, begin + tp, [&](int node) { return node == *begin; });
  return same ? PairClass::kSameNode : PairClass::kOtherNode;
}

std::vector<std::string> LatencyProfile::problems() const {
  std::vector<std::string> list;
  if (ranks < 1 || ranks_per_node < 1) list.push_back("ranks and ranks per node must be positive");
  if (steps.empty()) list.push_back("there are no step samples");
  add_sample_problems(
      "step", steps,
      [](const StepSample& s) { return s.new_tokens >= s.sequences && s.context >= s.new_tokens; },
      list);
  add_sample_problems(
      "verifying", verify,
      [](const StepSample& s) { return s.new_tokens > s.sequences && s.context >= s.sequences; },
      list);
  for (const int tp : degrees()) {
    const bool decodes = std::any_of(
        steps.begin(), steps.end(), [&](const StepSample& s) { return s.tp == tp && s.decodes(); });
    if (!decodes) list.push_back("TP " + std::to_string(tp) + " has no decode step");
  }
  for (const PassSample& s : passes)
    if (!is_possible(s))
      list.push_back(std::string("the ") + to_string(s.kind) + " (TP " + std::to_string(s.tp) +
                     ", " + std::to_string(s.rows) + " rows) is impossible or has no time");
  for (const MoveCost& m : moves)
    if (m.latency_ns < 0 || m.ps_per_byte < 0) list.push_back("a cost of moving KV is negative");
  for (const RendezvousCost& r : rendezvous)
    if (r.ranks < 1 || r.ns < 0) list.push_back("a rendezvous cost is impossible");
  if (groups_ns < 0 || weights_ns < 0 || graphs_ns < 0 || kv_bytes_per_position < 0)
    list.push_back("a cost of switching is negative");
  if (measured_percent < 1 || measured_percent > 100)
    list.push_back("the measured share is not between 1 and 100 percent");
  if (block_size < 1) list.push_back("the pages of the KV cache are empty");
  return list;
}

void require_degrees(const LatencyProfile& profile, const std::vector<int>& degrees) {
  const std::vector<int> known = profile.degrees();
  std::vector<std::string> names;
  for (const int tp : known) names.push_back(std::to_string(tp));
  for (const int tp : degrees) {
    TAPER_VALIDATE(std::binary_search(known.begin(), known.end(), tp),
                   "the profile does not contain tensor-parallel degree "
                       << tp << " (it has " << join(names)
                       << "); measure it again with taper profile, or leave this degree out");
    const auto points =
        std::count_if(profile.steps.begin(), profile.steps.end(),
                      [&](const StepSample& s) { return s.tp == tp && s.decodes(); });
    TAPER_VALIDATE(points >= kLeastDecodePoints,
                   "the profile has " << points << " decode steps of tensor-parallel degree " << tp
                                      << " (step times are interpolated between at least "
                                      << kLeastDecodePoints
                                      << "); measure it again with taper profile");
  }
}

std::uint64_t content_hash(const LatencyProfile& p) {
  Fingerprint hash("taper-profile");
  const ProfileIdentity& id = p.identity;
  add_all(hash, id.model, id.machine, id.transport, id.build, id.clock);
  add_all(hash, p.ranks, p.ranks_per_node, p.kv_bytes_per_position, p.block_size, p.groups_ns,
          p.weights_ns, p.graphs_ns, p.steps.size(), p.moves.size(), p.rendezvous.size(),
          p.fit_errors.size(), p.repeat_noise.size());
  if (!p.is_complete()) add(hash, p.measured_percent);     // files before it had none
  if (!p.verify.empty()) add(hash, std::ssize(p.verify));  // likewise
  for (const auto* samples : {&p.steps, &p.verify})
    for (const StepSample& s : *samples)
      add_all(hash, s.tp, s.pair, s.new_tokens, s.sequences, s.context, s.time_ns, s.spread_ns,
              s.repeats);
  if (!p.passes.empty()) add(hash, std::ssize(p.passes));  // files before them had none
  for (const PassSample& s : p.passes)
    add_all(hash, s.kind, s.tp, s.pair, s.replicas, s.rows, s.targets, s.length, s.time_ns,
            s.spread_ns, s.repeats);
  for (const MoveCost& m : p.moves) add_all(hash, m.pair, m.latency_ns, m.ps_per_byte);
  for (const RendezvousCost& r : p.rendezvous) add_all(hash, r.ranks, r.ns);
  for (const auto* errors : {&p.fit_errors, &p.repeat_noise})
    for (const FitError& e : *errors) add_all(hash, e.tp, e.pair, e.p50, e.p90, e.p95, e.max);
  return hash.value();
}

}  // namespace taper
