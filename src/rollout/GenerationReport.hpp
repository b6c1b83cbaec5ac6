// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// What drafts have brought. Sequences are counted in each step that decodes them.
struct SpeculationFigures {
  std::int64_t sequences = 0, drafted = 0, accepted = 0;

  bool any() const { return drafted > 0; }
  // Tokens per sequence and step; 1 without drafts.
  double tokens_per_step() const {
    return sequences == 0 ? 1.0 : 1.0 + static_cast<double>(accepted) / sequences;
  }
  // The share of drafted tokens that became tokens.
  double acceptance() const { return drafted == 0 ? 0.0 : static_cast<double>(accepted) / drafted; }
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
std::string summary(const SpeculationFigures& figures);

}  // namespace taper
