// SPDX-License-Identifier: Apache-2.0
//
// `taper plan`: where the models of a run are best placed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/PlacementSearch.hpp"
#include "pricing/RunPrices.hpp"
#include "shard/RankGrid.hpp"
#include "train/PlacementFile.hpp"
#include "train/TrainJob.hpp"

namespace taper {

inline constexpr double kGiB = 1 << 30;

inline double seconds_of(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

struct PlanOptions {
  std::vector<std::string> profiles;  // files
  std::string lengths;                // the run whose response lengths count; empty: as prescribed
  double memory_gib = 0;              // of a rank for models; 0: not limited
  PlacementSearchOptions search;
  // What profiles must have been measured on, but for the model; nothing: anything.
  std::optional<ProfileIdentity> here;

  std::vector<std::string> problems() const;
};

// A placement with what it is expected to cost, and, if it was tried, what it did cost.
struct PlannedPlacement {
  std::string name;               // its place in the list, or that of a strategy
  std::vector<Setting> settings;  // "Placement/Policy", "0:1x1"; ...
  std::vector<PlayedCall> calls;  // in the order in which they are made
  std::int64_t iteration_ns = 0, published_ns = 0, rank_bytes = 0;
  std::optional<double> measured_s;  // of an iteration

  std::string text() const;  // "policy 0:1x1, ..."
};

struct PlannedPlacements {
  std::vector<PlannedPlacement> found;       // best first
  std::vector<PlannedPlacement> strategies;  // that are possible here
  ProfileIdentity identity;                  // of the profile of the policy
  std::int64_t examined = 0;
  bool is_exhaustive = false;
  double seconds = 0;  // of the search

  // Null if it is not possible.
  const PlannedPlacement* flattening() const;
};

// The placements of the run's models that are best by its prices. On one rank. Throws Error if none
// fits in memory.
PlannedPlacements plan_run(const RunOptions& run, const DivisorChain& chain,
                           const PlanOptions& options);

// The run with its models placed so.
RunOptions placed(RunOptions run, const std::vector<Setting>& settings);

// For Placement/File.
PlacementFile placement_file(const RunOptions& run, const DivisorChain& chain,
                             const PlannedPlacements& plans);

using MakeTrainJob = std::function<std::unique_ptr<TrainJob>(const RunOptions&)>;

// Why the hosts of these ranks cannot hold a run, by the very plans of memory that it makes; empty
// if they can. rank_bytes: of the rank that needs most. Collective over the world.
std::string memory_problem(const RunOptions& placed, const Ranks& ranks, const MakeTrainJob& make,
                           std::int64_t& rank_bytes);

// Drops placements that do not fit, until one does; the bytes of that one become exact. Throws
// Error if none does. Collective over the world; `plans` count on rank 0.
void drop_too_large(PlannedPlacements& plans, const RunOptions& run, const Ranks& ranks,
                    const PlanOptions& options, const MakeTrainJob& make);

// In the first iteration memory is touched for the first time, in the second that of a reference.
constexpr int kFirstTimedIteration = 3;

// Trains `iterations` iterations with the models so placed, in `directory`, which must not exist
// and is removed afterwards: the mean time of an iteration from kFirstTimedIteration on, without
// checkpoints, in seconds; nothing if a stop request came. Collective over the world.
std::optional<double> time_placement(const RunOptions& run, const Ranks& ranks,
                                     const MakeTrainJob& make,
                                     const std::filesystem::path& directory, int iterations);

// Tries the strategies and the best `most` of what was found, in a directory beside the run's, and
// notes their times; a placement that does not fit in memory is passed over with a warning. False
// if a stop request came. Collective over the world; `plans` count on rank 0.
bool time_placements(PlannedPlacements& plans, const RunOptions& run, const Ranks& ranks,
                     const MakeTrainJob& make, int most, int iterations);

}  // namespace taper
