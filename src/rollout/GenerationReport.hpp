// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/Response.hpp"
#include "draft/GuessDrafter.hpp"
#include "reshape/Reshaper.hpp"
#include "rollout/Consultation.hpp"
#include "simulate/Account.hpp"

namespace taper {

// A change of layout that was agreed upon, as this rank saw it.
struct SwitchRecord {
  Plan plan;
  Layout before;
  Confirmation confirmation = {};
  ReshapeReport report = {};
  double at_s = 0;       // since the start of the generation
  double meeting_s = 0;  // until lists and prices were there
  double seconds = 0;    // altogether
  int sequences = 0;
};

// Steps that did nothing but decode, and their drafts.
struct DecodeTotals {
  std::int64_t steps = 0;
  std::int64_t sequences = 0;  // summed over the steps
  std::int64_t drafted = 0, accepted = 0;
  std::int64_t ns = 0;
  std::int64_t model_ns = 0;  // of these, of a draft model

  void add(const DecodeTotals& other);
  // Of a sequence; 1 without drafts.
  double tokens_per_step() const;
  // accepted / drafted; 0 if nothing was drafted.
  double acceptance() const;
  // As DraftShares::model.
  std::uint16_t model_share() const;
};

// What drafts have brought, in integers alone: summed over replicas.
struct SpeculationFigures {
  std::array<DecodeTotals, kLengthBuckets> batches{};  // of [2^i, 2^(i+1)) sequences
  std::array<DraftTotals, kDraftSources> sources{};

  void add(const StepReport& step, std::int64_t ns, std::int64_t model_ns);
  DecodeTotals total() const;

  // All of them, to be summed over ranks.
  using Words =
      std::array<std::int64_t, 6 * kLengthBuckets + 2 * static_cast<std::size_t>(kDraftSources)>;
};

// What a generation was, besides its responses.
struct GenerationReport {
  Layout first_layout, last_layout;
  double seconds = 0;
  std::int64_t consultations = 0;                  // of this rank as a leader
  double consultation_s = 0;                       // the choice of the first layout included
  std::vector<ConsultationRecord> decisions = {};  // on rank 0
  std::vector<SwitchRecord> switches = {};
  SpeculationFigures speculation = {};  // of all replicas
  // By a GenerationReviewer: on rank 0 after Generator::learn(), if the planner predicts.
  std::optional<GenerationReview> review = {};
};

// One line for people: "layout 1x2, then 2x1 at 3.2 s (...)".
std::string summary(const GenerationReport& report);
// Likewise: "2.31 tokens per sequence and step, 61 % of 1,234 drafted tokens right".
std::string summary(const DecodeTotals& totals);

}  // namespace taper
