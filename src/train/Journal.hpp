// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "results/RolloutFile.hpp"
#include "results/RunDirectory.hpp"
#include "session/Ranks.hpp"

namespace taper {

// What iterations have generated that were begun and not finished: the job that does them again
// gets the same tokens, and drafts them from here. One rollout file per iteration, in the folder
// `journal` of the run.
class Journal {
 public:
  // Nothing is read or written without `is_on`, which is the same on all ranks.
  Journal(const RunDirectory& directory, bool is_on, const Ranks& ranks)
      : directory_(directory), is_on_(is_on), ranks_(ranks) {}

  bool is_on() const { return is_on_; }
  // Keeps the responses of an iteration, whole or not; `mine` are those of this rank alone.
  // Collective over the world.
  void write(std::int64_t iteration, std::span<const RolloutRecord> mine) const;
  // What is known of an iteration, on all ranks: of each response the tokens alone. A file that
  // cannot be read is left out, with a warning: its tokens are generated as if it did not exist.
  // Collective over the world.
  std::vector<RolloutRecord> read(std::int64_t iteration) const;
  // This iteration, and all before, are finished.
  void remove(std::int64_t iteration) const;

 private:
  RunDirectory directory_;
  bool is_on_;
  const Ranks& ranks_;
};

}  // namespace taper
