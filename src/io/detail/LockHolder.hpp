// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taper::detail {

// The process that holds a lock file, as it stands in there: one JSON object on a line.
struct LockHolder {
  std::string host;          // for people
  std::string place;         // boot of the machine and its process numbers: where `process` counts
  std::int64_t process = 0;  // number; may be used again after the process has ended
  std::int64_t started = 0;  // clock ticks since the machine started: tells such processes apart
  std::string slurm_job;     // empty outside of Slurm
  std::string since;         // UTC
};

// This process, now.
LockHolder this_process();

std::string to_text(const LockHolder& holder);
// Nothing for a text that is no such object, or not all of it.
std::optional<LockHolder> parse_holder(std::string_view text);

// Whether the process numbers of `holder` are those of this process, so that is_alive() can tell.
bool is_here(const LockHolder& holder);
// Whether the very process still runs; of a holder that is_here().
bool is_alive(const LockHolder& holder);
// Whether that process, which runs, is about to end: it is on its way out, or a signal that ends
// processes or asks them to stop waits for it. Of a holder that is_here().
bool is_ending(const LockHolder& holder);

// "process 4711 on node7 since 2026-01-31T12:00:00Z, Slurm job 42".
std::string describe(const std::optional<LockHolder>& holder);

}  // namespace taper::detail
