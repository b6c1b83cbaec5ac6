// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "infer/GenerateJob.hpp"
#include "instance/ModelOptions.hpp"
#include "param/CommandLine.hpp"
#include "session/Watchdog.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// Which layouts a command takes: replicas of one size, or also of different ones.
enum class LayoutForms { kUniform, kMixed };

// What the commands on a fixed model have in common.
struct ModelArguments {
  std::string model, layout;
  Numbers numbers;
  double hang_seconds = kHangSeconds;

  void declare(param::CommandLine& line, LayoutForms layouts);
  // The layout asked for, of replicas of one size; else one rank per replica. Throws Error if it
  // is not one of `ranks` ranks.
  RankGrid grid(int ranks) const;
};

// --dtype of the forward weights, --arithmetic of products, --cache-type of keys and values.
void declare_numbers(param::CommandLine& line, Numbers& numbers);
// Throws Error if these do not fit each other.
void check_numbers(const Numbers& numbers);
void declare_hang_seconds(param::CommandLine& line, double& seconds);
// How responses are drawn.
void declare_sampling(param::CommandLine& line, GenerateOptions& options);
// Throws Error if the options do not fit each other.
void check_sampling(const GenerateOptions& options);
// Logs what drafts brought, if there may have been any.
void report_drafts(const GenerateOptions& options, const GenerationReport& report);

}  // namespace taper
