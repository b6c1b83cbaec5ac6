// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "checkpoint/StateFile.hpp"
#include "run/ResumePoint.hpp"

namespace taper {

// What a training run begins with.
struct RunStart {
  std::filesystem::path checkpoint;  // empty: afresh, with the weights of the model directory
  StateInfo state;                   // of the checkpoint, on rank 0

  bool is_afresh() const { return checkpoint.empty(); }
};

// How closely a checkpoint is looked at before it is chosen: whether its state is one of this
// model, or also all bytes against the manifest, which takes as long as reading them. Loading
// checks them in any case.
enum class CheckpointCheck { kHead, kContents };

// What a run that starts from there begins with: of a folder the newest usable checkpoint. Changes
// nothing. Throws Error, the same on all ranks, if checkpoints are there and none is usable, or
// if the one chosen has another seed. Collective over the world: rank 0 chooses, since
// others might see a shared folder in another state; all ranks read contents.
RunStart find_run_start(const ResumePoint& from, std::uint64_t seed, const ModelFiles& files,
                        const Ranks& ranks, CheckpointCheck check);

// What a run with that start would do, as people read it: "would resume after step 3 (checkpoint
// out/checkpoints/iter_000003)", "would start " and `beginning`. `unit` is what the run calls an
// iteration, `over` why nothing is left to do; empty if something is. On rank 0, which has the
// state.
std::string start_text(const RunStart& start, const std::string& beginning, const std::string& unit,
                       const std::string& over);

// Throws Error if a run of one seed would go on from a checkpoint of another: the random numbers
// to come would not be those of one run.
void require_same_seed(const std::filesystem::path& checkpoint, std::uint64_t checkpoint_seed,
                       std::uint64_t run_seed);

}  // namespace taper
