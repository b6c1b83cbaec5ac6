// SPDX-License-Identifier: Apache-2.0
//
// What `taper profile` measures on a machine for one model: plain data, all times integers, so that
// whatever is computed from it is the same on every rank. Its file is profile/ProfileFile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace taper {

// Named facts of a model, a machine or a job, e.g. {"layers", "30"}, as files hold them.
using Facts = std::map<std::string, std::string>;

// Whether the ranks of a group, or the two ends of a transfer, share a node.
enum class PairClass : std::int32_t { kSameNode = 0, kOtherNode = 1 };
const char* to_string(PairClass pair);
// The class of a group [first, first + tp) of ranks placed node by node.
PairClass pair_class(int first, int tp, int ranks_per_node);
// ... of ranks on these nodes.
PairClass pair_class(int first, int tp, const std::vector<int>& node_of_rank);

// What a profile belongs to.
struct ProfileIdentity {
  Facts model;      // layers, hidden, heads, kv_heads, head_dim, vocab, dtype, kv_dtype, ...
  Facts machine;    // name, cpu, cores_per_rank, threads_per_rank, ranks_per_node, ...
  Facts transport;  // the library and its settings
  Facts build;      // version, git hash, compiler
  Facts clock;      // frequency, governor, time of measurement
};

// Whether a profile may be used elsewhere than where it was measured: not if the model, machine
// or transport differ; with a warning if the build or the clock differ.
struct ProfileMatch {
  std::vector<std::string> refusals;
  std::vector<std::string> warnings;
};
ProfileMatch compare_identity(const ProfileIdentity& profile, const ProfileIdentity& here);

// One engine step of a replica, measured: it decodes, or has prompt (or recomputed) positions too,
// or verifies guesses.
struct StepSample {
  std::int32_t tp = 1;
  PairClass pair = PairClass::kSameNode;  // of the group
  std::int32_t new_tokens = 1;            // rows of the step
  std::int32_t sequences = 1;             // with work in the step
  std::int64_t context = 0;               // summed context lengths after the step, positions
  std::int64_t time_ns = 0;               // typical mean, see summarize()
  std::int64_t spread_ns = 0;             // upper minus lower quartile
  std::int32_t repeats = 0;

  bool decodes() const { return new_tokens == sequences; }
  friend bool operator==(const StepSample&, const StepSample&) = default;
};

// What a model does with whole sequences, beside generating them.
enum class PassKind : std::int32_t {
  kForward = 0,  // forward pass, and log-probs of targets
  kLearn = 1,    // forward and backward pass for the log-probs of targets
  kUpdate = 2,   // optimizer step: sum of the gradients, AdamW, publishing
};
const char* to_string(PassKind kind);

// A pass over a micro-batch of equally long sequences on one replica, or an optimizer step of so
// many replicas. Activations are kept for the backward pass (no checkpointing).
struct PassSample {
  PassKind kind{};
  std::int32_t tp = 1;
  PairClass pair = PairClass::kSameNode;  // of the replica; of all replicas for a step
  std::int32_t replicas = 1;              // that sum their gradients in a step
  std::int32_t rows = 0;                  // tokens; none in a step, as what follows
  std::int32_t targets = 0;               // rows whose logits are computed
  std::int32_t length = 0;                // of a sequence, tokens
  std::int64_t time_ns = 0;               // median
  std::int64_t spread_ns = 0;             // upper minus lower quartile
  std::int32_t repeats = 0;
  friend bool operator==(const PassSample&, const PassSample&) = default;
};

// Moving KV data between two ranks: pack, send, unpack.
struct MoveCost {
  PairClass pair = PairClass::kSameNode;
  std::int64_t latency_ns = 0;
  std::int64_t ps_per_byte = 0;
  friend bool operator==(const MoveCost&, const MoveCost&) = default;
};

// Meeting of so many ranks: hash and sequence lists exchanged.
struct RendezvousCost {
  std::int32_t ranks = 1;
  std::int64_t ns = 0;
  friend bool operator==(const RendezvousCost&, const RendezvousCost&) = default;
};

// Relative error of step times predicted without the sample itself, millionths, by quantile.
struct FitError {
  std::int32_t tp = 1;
  PairClass pair = PairClass::kSameNode;
  std::int64_t p50 = 0, p90 = 0, p95 = 0, max = 0;
  friend bool operator==(const FitError&, const FitError&) = default;
};

struct LatencyProfile {
  ProfileIdentity identity;
  std::int32_t ranks = 1;
  std::int32_t ranks_per_node = 1;
  std::int64_t kv_bytes_per_position = 0;  // of one sequence, all layers and KV heads
  std::int32_t block_size = 64;            // positions of a page of the KV cache; pages move whole
  // Of the time that measuring was planned to take; less than 100 if a budget ended it before.
  std::int32_t measured_percent = 100;
  std::vector<StepSample> steps;
  // Steps in which each sequence decodes and has as many guesses drawn from as the others; context
  // is what it would be without them. None in older files, or if they were not measured.
  std::vector<StepSample> verify;
  std::vector<PassSample> passes;          // none if they were not measured
  std::vector<MoveCost> moves;             // one for each pair class that exists
  std::vector<RendezvousCost> rendezvous;  // by ascending ranks
  std::int64_t groups_ns = 0;              // making the communicators of a layout ready (cached: 0)
  std::int64_t weights_ns = 0;             // making the weight shards ready (views: 0)
  std::int64_t graphs_ns = 0;              // making captured graphs ready
  std::vector<FitError> fit_errors;
  // Of the machine itself: the even against the odd repeats of each sample, by the same quantiles.
  std::vector<FitError> repeat_noise;

  bool is_complete() const { return measured_percent == 100; }
  // TP degrees with samples, ascending.
  std::vector<int> degrees() const;
  // The class of a group [first, first + tp) of its ranks.
  PairClass pair_of(int first, int tp) const { return pair_class(first, tp, ranks_per_node); }
  std::vector<std::string> problems() const;
};

// Decode steps of a degree that interpolation over batches and contexts needs.
inline constexpr int kLeastDecodePoints = 3;
// Throws Error naming the degree if the profile has no samples of it, or fewer decode steps.
void require_degrees(const LatencyProfile& profile, const std::vector<int>& degrees);

// Of everything in the profile; equal contents, equal hash.
std::uint64_t content_hash(const LatencyProfile& profile);

}  // namespace taper
