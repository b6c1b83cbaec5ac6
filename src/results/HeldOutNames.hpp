// SPDX-License-Identifier: Apache-2.0
//
// The names that held-out figures have in metrics.jsonl and run.h5, built and taken apart here
// alone:
//
//                       of an iteration            after the last iteration of the run
//   of the plain set    val/score/mean             val/score/final
//   of a named set      val/<set>/avg@k            val/<set>/final/avg@k
//   of rewards          val/reward/<name>/mean     val/final/reward/<name>/mean
#pragma once

#include <optional>
#include <string>

#include "results/MetricTable.hpp"

namespace taper {

inline constexpr const char* kPlainHeldOutScore = "val/score/mean";
inline constexpr const char* kPlainFinalScore = "val/score/final";
inline constexpr const char* kHeldOutRewards = "val/reward";  // before a reward's figures

// Figures of a named set, over k samples of each prompt: the mean score, the share of prompts of
// which one of k samples is right, and of those whose most frequent answer is.
std::string avg_figure(int k);
std::string pass_figure(int k);
std::string maj_figure(int k);
inline constexpr const char* kLengthFigure = "response_length";

// What a figure is of.
enum class HeldOutSource { kPlainSet, kNamedSet, kRewards };

// A name, taken apart.
struct HeldOutName {
  HeldOutSource source = HeldOutSource::kPlainSet;
  std::string set;     // of kNamedSet
  std::string figure;  // "avg@4", of kRewards "<name>/mean"; the plain set has but one
  bool is_final = false;

  // Whether it is that of a set's mean score.
  bool is_mean_score() const;
  friend bool operator==(const HeldOutName&, const HeldOutName&) = default;
};

std::string to_string(const HeldOutName& name);
// Nothing for other names: "val/loss" is of fine-tuning.
std::optional<HeldOutName> parse_held_out_name(const std::string& name);
// "val/<set>/<figure>".
std::string held_out_name(const std::string& set, const std::string& figure);
// Whether a set must not have the name, because others have its place.
bool is_taken_set_name(const std::string& set);

// The name that a held-out figure has after the last iteration of a run.
std::string final_name(const std::string& name);
bool is_final_name(const std::string& name);
// What a figure of a named set means, for its place in run.h5; nothing for others, which the table
// of metrics has.
std::optional<MetricMeaning> held_out_meaning(const std::string& name);

}  // namespace taper
