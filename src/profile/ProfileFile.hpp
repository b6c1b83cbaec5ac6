// SPDX-License-Identifier: Apache-2.0
//
// profile.h5, a LatencyProfile on disk:
//
//   /                      attributes: format, format_version, ranks, ranks_per_node, content_hash,
//                          measured_percent (of the planned measuring; absent: 100)
//   /identity/<kind>       group with one text attribute per fact; kinds: model, machine,
//                          transport, build, clock
//   /steps/<column>        (samples) of each step sample: tp, pair (0 same node, 1 other node),
//                          new_tokens, sequences, context, time_ns, spread_ns, repeats
//   /switching/moves/..., /switching/rendezvous/..., /switching (attributes: kv_bytes_per_position,
//                          block_size, groups_ns, weights_ns, graphs_ns)
//   /fit_errors/<column>   of left-out step times, per TP degree and pair class, millionths
//   /repeat_noise/<column> the same of repeats against each other: the machine's noise
#pragma once

#include <filesystem>

#include "planner/LatencyProfile.hpp"

namespace taper {

// Replaces the file in one step. On one rank. Throws Error if the profile has problems.
void write_profile(const std::filesystem::path& path, const LatencyProfile& profile);

// On any rank. Throws Error naming the file if it is missing, no profile, damaged (each dataset
// and the whole are checksummed) or of another version.
LatencyProfile read_profile(const std::filesystem::path& path);

}  // namespace taper
