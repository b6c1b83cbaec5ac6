// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <tuple>

#include "session/Ranks.hpp"

namespace taper {

// Where a training run starts from: one checkpoint, or the newest sound one of a folder (which may
// have none), or, if both are empty, the model directory.
struct ResumePoint {
  std::filesystem::path checkpoint;
  std::filesystem::path store;
  bool is_own = true;  // of the run in the output directory, which it continues

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.checkpoint, self.store, self.is_own);
  }
  bool is_start() const { return checkpoint.empty() && store.empty(); }
};

// What `--resume` means for a run with this output directory, which users know by `key`: "auto"
// (the newest checkpoint of the output directory, if there is one), "none", or the directory of a
// checkpoint, or of a run, whose newest checkpoint is then meant.
//
// A checkpoint of another run begins a new run: the output directory must not hold one yet, or the
// metrics of two runs would stand in one log. Throws Error (kBadInput) if it does, naming both,
// and if the directory is neither. Writes nothing. Collective over the world.
ResumePoint find_resume_point(const Ranks& ranks, const std::string& resume,
                              const std::filesystem::path& output,
                              const std::string& key = "Output/Directory");

}  // namespace taper
