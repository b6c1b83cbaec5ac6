// SPDX-License-Identifier: Apache-2.0
//
// The planner on described machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/Account.hpp"
#include "study/SimulateOptions.hpp"

namespace taper {

// What follows from a description before anything is played.
struct SimulatedSetting {
  std::vector<int> degrees;  // that are played
  int slots_per_rank = 1;    // sequences in flight that memory holds
  std::string table() const;
  // Of the smallest degree, and of the machine.
  double weight_gb = 0, pool_gb = 0, peak_positions = 0;
  std::int64_t kv_bytes_per_position = 0;
};
// Throws Error if the weights fit in no degree, or a degree asked for is not possible.
SimulatedSetting setting_of(const SimulateOptions& options);

// The first generation that is played.
ReplayTrace first_trace(const SimulateOptions& options, const SimulatedSetting& setting);

// One description played. Times are sums over the generations that count.
struct SimulatedCase {
  std::string name;
  double share = 1;  // of the generation in the iteration, in the best static layout
  int ranks = 1, generations = 0, best = 0;
  std::vector<int> degrees;
  std::vector<std::int64_t> static_ns;                                           // by degree
  std::int64_t adaptive_ns = 0, myopic_ns = 0, oracle_ns = 0, switching_ns = 0;  // oracle 0: none
  OneSwitchResult one_switch;
  int switches = 0, first = 1;  // first: degree in which the last generation began
  std::int64_t tokens = 0;      // prompts and responses
  PublishedFigures published;

  std::int64_t best_ns() const { return static_ns[static_cast<std::size_t>(best)]; }
  // Share of the generation time of the best static layout.
  double saved(std::int64_t ns) const;
  // Of the iteration, whose other parts do not change.
  double speed_up(std::int64_t ns) const;
  double tokens_per_second() const;  // of a rank, over the iteration, in the best static layout
};
SimulatedCase simulate(const SimulateOptions& options, const std::string& name);

// Rounds of tail batching on the described machine (study/RoundStudy.hpp), as rows of a table.
std::string simulate_rounds(const SimulateOptions& options, const std::string& name);

// A table for people, and one JSON line per case for scripts.
std::string to_table(const std::vector<SimulatedCase>& cases);
std::string to_json_lines(const std::vector<SimulatedCase>& cases);

}  // namespace taper
