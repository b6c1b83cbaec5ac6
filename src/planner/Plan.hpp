// SPDX-License-Identifier: Apache-2.0
//
// What the planner may propose and what it answers. All times are integers: equal inputs give equal
// plans, bit for bit, on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shard/Layout.hpp"

namespace taper {

// When a plan takes effect. The values stand in files.
enum class PlanStart : std::int32_t {
  kNow = 0,
  kBelow = 2,  // as soon as at most so many sequences are alive
};

// Whether sequences also move between replicas of equal groups, for balance.
enum class Repack { kNo, kYes };

// "Continue in this layout from then on." A plan whose layout is the present one and that does not
// repack is "stay".
struct Plan {
  Layout layout;
  PlanStart start = PlanStart::kNow;
  std::int64_t argument = 0;  // sequences, of kBelow
  Repack repack = Repack::kNo;
  friend bool operator==(const Plan&, const Plan&) = default;
};
std::string to_string(const Plan& plan);
Plan stay_in(const Layout& layout);

// Nanoseconds of a quantity over the length scenarios.
struct PriceRange {
  std::int64_t mean = 0, low = 0, high = 0;  // low, high: the 10 % quantile, its mirror
};

struct Price {
  Plan plan;
  PriceRange rest;    // time from now to the last sequence
  PriceRange saving;  // against staying
  std::int64_t cost_ns = 0;
};

struct Decision {
  bool act = false;  // carry out `plan` now (after a meeting and confirm())
  Plan plan;         // the best one; if !act, what is recorded as advice or expectation
  std::vector<Price> prices;
  std::int64_t wait_ns = 0;  // nothing is likely to be different before that
  std::string reason;        // a short text for logs
  std::uint64_t hash = 0;    // of epoch, consultation and plan, to be compared between ranks
  bool pays = false;         // to carry out `plan` now, which only some modes do

  // The forecast of the time to the last sequence in the present layout, whose price comes first.
  std::optional<PriceRange> rest_of_staying() const {
    if (prices.empty()) return std::nullopt;
    return prices.front().rest;
  }
};

// Exact state of one sequence at a meeting.
struct SequenceState {
  std::int64_t id = 0;        // global order: ascending in every list
  std::int32_t replica = 0;   // of the layout before
  std::int32_t context = 0;   // positions in the KV cache; 0 while it waits
  std::int32_t prompt = 0;    // tokens
  std::int32_t response = 0;  // tokens so far
  std::int32_t limit = 0;     // of response tokens
  std::int64_t owner = -1;    // the prompt, the same number for all its responses; -1: not known
};

enum class KvAction : std::int32_t { kKeep = 0, kMove = 1, kRecompute = 2 };

struct SequenceMove {
  std::int64_t id = 0;
  std::int32_t from = 0;          // replica of the layout before
  std::int32_t to = 0;            // replica of the layout after
  KvAction kv = KvAction::kKeep;  // kKeep: no position needs to be sent or computed
  friend bool operator==(const SequenceMove&, const SequenceMove&) = default;
};

// Nanoseconds of a switch by part.
struct SwitchParts {
  std::int64_t rendezvous = 0, groups = 0, weights = 0, graphs = 0, move = 0, recompute = 0;
  std::int64_t kv_bytes = 0;  // that travel
  std::int64_t total() const { return rendezvous + groups + weights + graphs + move + recompute; }
};

// What a meeting decides.
struct Confirmation {
  bool act = false;
  std::vector<SequenceMove> moves;  // of all sequences of the list, in its order
  SwitchParts cost;
  PriceRange saving;
  std::string reason;
  std::uint64_t hash = 0;
};

}  // namespace taper
