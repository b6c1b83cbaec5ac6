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
#include "shard/RankGrid.hpp"
#include "study/RunPrices.hpp"
#include "train/PlanFile.hpp"
#include "train/TrainJob.hpp"

namespace taper {

struct PlanOptions {
  std::vector<std::string> profiles;  // files
  std::string lengths;                // the run whose response lengths count; empty: as prescribed
  double memory_gb = 0;               // GiB of a rank for models; 0: not limited
  PlacementSearchOptions search;

  std::vector<std::string> problems() const;
};

// A placement with what it is expected to cost, and, if it was tried, what it did cost.
struct PlannedPlacement {
  std::string name;               // its place in the list, or that of a strategy
  std::vector<Setting> settings;  // "Placement/Policy", "0-0:1x1"; ...
  std::vector<PlayedCall> calls;  // in the order of the models
  std::int64_t iteration_ns = 0, published_ns = 0, rank_bytes = 0;
  std::optional<double> measured_s;  // of an iteration

  std::string text() const;  // "policy 0-0:1x1, ..."
};

struct PlannedPlacements {
  std::vector<PlannedPlacement> found;       // best first
  std::vector<PlannedPlacement> strategies;  // that are possible here: flattening first
  std::int64_t examined = 0;
  bool is_exhaustive = false;
  double seconds = 0;  // of the search
};

// The placements of the run's models that are best by its prices. On one rank. Throws Error if none
// fits in memory.
PlannedPlacements plan_run(const RunOptions& run, const DivisorChain& chain,
                           const PlanOptions& options);

// The run with its models placed so.
RunOptions placed(RunOptions run, const std::vector<Setting>& settings);

// For Placement/File.
PlanFile plan_file(const RunOptions& run, const DivisorChain& chain, const PlanOptions& options,
                   const PlannedPlacements& plans);

using MakeTrainJob = std::function<std::unique_ptr<TrainJob>(const RunOptions&)>;

// Drops placements that the hosts of these ranks do not have the memory for, by the very plans of
// memory that runs make, until one fits; the bytes of that one become exact. Throws Error if none
// does. Collective over the world; `plans` count on rank 0.
void drop_too_large(PlannedPlacements& plans, const RunOptions& run, const Ranks& ranks,
                    const MakeTrainJob& make);

// Trains `iterations` iterations with the models so placed, in `directory`, which is removed
// afterwards: the mean time of an iteration without the first one and without checkpoints, in
// seconds. Collective over the world.
double time_placement(const RunOptions& run, const Ranks& ranks, const MakeTrainJob& make,
                      const std::filesystem::path& directory, int iterations);

// A table for people, and one JSON line per placement for scripts.
std::string to_table(const PlannedPlacements& plans);
std::string to_json_lines(const PlannedPlacements& plans);

}  // namespace taper
