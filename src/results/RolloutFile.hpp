// SPDX-License-Identifier: Apache-2.0
//
// Rollouts of one iteration in one HDF5 file, written by all ranks together. Ragged data are a flat
// array and offsets: the values of sample i are values[offsets[i] .. offsets[i + 1]).
//
//   /tokens/{values,offsets}     i32: prompt, then response
//   /log_probs/{values,offsets}  f32 over response tokens, natural log, of the full softmax at the
//                                rollout temperature
//   /kept_mass/{values,offsets}  f32 over response tokens; absent if no sample has them
//   /values/{values,offsets}     f32 over response tokens, by the critic; likewise
//   /layout/{values,offsets}     i32 (spans, 3): first response token, TP degree, replica that
//                                produced the span
//   /group                       i64: which prompt of the iteration
//   /stream_index                i64: number of the prompt in the run's stream of prompts; absent
//                                with plain rounds
//   /sample                      i32: which of its samples
//   /prompt_length               i32
//   /response_length             i32
//   /advantage                   f64
//   /finish                      i8: FinishReason
//   /rewards                     f32 (samples, components)
//   /reward_names                text (components)
//
// Rows stand in the order of ids whichever rank brings them: equal rollouts give equal
// files, byte for byte on the same number of ranks and value for value on any.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/Response.hpp"

namespace taper {

struct RolloutRecord {
  ResponseId id;
  std::int32_t prompt_length = 0;
  std::vector<std::int32_t> tokens;  // prompt + response
  std::vector<float> log_probs;      // one for each response token
  std::vector<float> kept_mass;      // the same, or empty if nothing was cut
  std::vector<float> values;         // the same, or empty without a critic
  std::vector<float> rewards;        // one for each component
  double advantage = 0;
  FinishReason finish = FinishReason::kEos;
  std::vector<ProducedBy> layout;  // may be empty

  // As records go from rank to rank (base/Packing.hpp).
  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.prompt_length, self.advantage, self.finish, self.tokens,
                    self.log_probs, self.kept_mass, self.values, self.rewards, self.layout);
  }

  std::int32_t response_length() const {
    return static_cast<std::int32_t>(tokens.size()) - prompt_length;
  }
  friend bool operator==(const RolloutRecord&, const RolloutRecord&) = default;
};

// The same on all ranks.
struct RolloutFileOptions {
  std::int64_t iteration = 0;
  std::vector<std::string> reward_names = {};
  // By ResponseId::prompt: the prompt's number in the stream of prompts; empty: not written.
  std::vector<std::int64_t> stream = {};
  int compression = 1;  // deflate level
  // Ranks that write: one for each so many bytes, all at most. A small file is written by one rank
  // at no cost to the others but a message; collective calls of many ranks for a few kilobytes
  // would cost far more.
  std::int64_t bytes_per_writer = 16 << 20;

  std::vector<std::string> problems() const;
};

struct RolloutSet {
  std::int64_t iteration = 0;
  std::vector<std::string> reward_names = {};
  std::vector<RolloutRecord> records;  // by ids
  bool has_rounds = false;             // of tail batching: the records are what they have kept
};

// Collective over comm. Any rank may bring any records, also none; no ids twice. A bad
// record on one rank throws on all, and so does a failure of a single writer. If several ranks
// write, one that fails throws alone: the caller must end all ranks then (session/Guard.hpp does).
// The file appears whole or not at all.
void write_rollouts(const std::filesystem::path& path, MPI_Comm comm,
                    std::span<const RolloutRecord> mine, const RolloutFileOptions& options);

// On one rank.
RolloutSet read_rollouts(const std::filesystem::path& path);

}  // namespace taper
