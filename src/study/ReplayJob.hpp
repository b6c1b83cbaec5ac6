// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/Account.hpp"
#include "simulate/LengthLaw.hpp"

namespace taper {

// The planner on recorded or described lengths, on the machine of a profile. Nothing is
// generated. Runs that have recorded drafts are replayed with drafts that reach as far.
struct ReplayOptions {
  std::string profile;            // profile.h5
  std::vector<std::string> runs;  // directories of runs, or rollout files
  std::vector<LengthLaw> laws;    // if there are no runs
  int seeds = 5;                  // runs per law
  int iterations = 10;            // accounted, per run of a law
  int sequences = 128;            // per iteration of a law
  int samples = 8;                // of a prompt of a law, for rounds
  int prompt_tokens = 100;        // per sequence of a law
  int max_new_tokens = 0;         // 0: 1024 of a law; the longest response of a recorded run
  int max_running = 64;           // sequences in flight per rank
  int ranks = 0;                  // 0: those of the profile
  PlannerOptions planner;
  AccountOptions account;

  std::vector<std::string> problems() const;
};

// One row of the table: a recorded run or a law, with all its generations.
struct ReplayResult {
  std::string name;
  std::vector<std::vector<GenerationAccount>> runs;  // by seed
  AccountSummary summary;
};

// On one rank. Throws Error if a file is missing or damaged, or the profile lacks a degree.
std::vector<ReplayResult> replay(const ReplayOptions& options);

// Rounds of tail batching over the same lengths, as a table (study/RoundStudy.hpp). Of a run all
// generations must have equally many responses to each prompt.
std::string replay_rounds(const ReplayOptions& options);

// A table for people, and one JSON line per generation for scripts.
std::string to_table(const std::vector<ReplayResult>& results);
std::string to_json_lines(const std::vector<ReplayResult>& results);

}  // namespace taper
