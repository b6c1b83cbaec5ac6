// SPDX-License-Identifier: Apache-2.0
//
// profile.h5, a LatencyProfile on disk, as runs take it and people read it. What is in it:
//
//   /                      attributes: format, format_version, ranks, ranks_per_node, content_hash,
//                          measured_percent (of the planned measuring; absent: 100)
//   /identity/<kind>       group with one text attribute per fact; kinds: model, machine,
//                          transport, build, clock
//   /steps/<column>        (samples) of each step sample: tp, pair (0 same node, 1 other node),
//                          new_tokens, sequences, context, time_ns, spread_ns, repeats
//   /verify/<column>       the same of steps with guesses, which new_tokens counts and context does
//                          not; absent if none were measured
//   /passes/<column>       of each pass or optimizer step (PassSample): kind, tp, pair, replicas,
//                          rows, targets, length, time_ns, spread_ns, repeats; absent likewise
//   /switching/moves/..., /switching/rendezvous/..., /switching (attributes: kv_bytes_per_position,
//                          block_size, groups_ns, weights_ns, graphs_ns)
//   /fit_errors/<column>   of left-out step times, per TP degree and pair class, millionths
//   /repeat_noise/<column> the same of repeats against each other: the machine's noise
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Replaces the file in one step. On one rank. Throws Error if the profile has problems.
void write_profile(const std::filesystem::path& path, const LatencyProfile& profile);

// On any rank. Throws Error naming the file if it is missing, no profile, damaged (each dataset
// and the whole are checksummed) or of another version.
LatencyProfile read_profile(const std::filesystem::path& path);

// The profile of a run whose identity is `here` (gather_identity): read and checked, the same on
// all ranks. Throws Error if it is missing or damaged, was measured on another model, machine or
// transport, or lacks one of the degrees; warns of another build or clock, and if the profile is
// incomplete. Collective over the world.
LatencyProfile read_matching_profile(const std::filesystem::path& path, const ProfileIdentity& here,
                                     const Ranks& ranks, const std::vector<int>& degrees);

// A profile for people: for each degree its points, their range, how well interpolation and the
// machine agree with themselves, and the costs of switching.
std::string to_table(const LatencyProfile& profile);

// Why an incomplete profile is not to be relied on, with the remedy; empty for a complete one.
std::string completeness_problem(const LatencyProfile& profile);

// Why decisions by the profile will be poor: repeated measurements differed by more than 5 % in the
// median; empty if they did not.
std::string noise_problem(const LatencyProfile& profile);

}  // namespace taper
