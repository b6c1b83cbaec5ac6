// SPDX-License-Identifier: Apache-2.0
//
// What run files and command lines say alike of generation, described once. Declare adds a number
// or an integer: declare(key, label, member, doc) is the parameter `key` of a run file, or the
// option of the same words whose value the help calls `label`; it returns what limits the value.
#pragma once

#include <type_traits>

#include "draft/SpeculationOptions.hpp"
#include "engine/EngineSizing.hpp"
#include "engine/SamplingOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// Declares keys of a section.
inline auto keys_of(param::Section section) {
  return [section](const char* key, const char*, auto& member, const char* doc) mutable {
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(member)>>)
      return section.integer(key, member, doc);
    else
      return section.number(key, member, doc);
  };
}

// The ids that may be sampled.
template <class Declare>
void describe_truncation(SamplingOptions& o, Declare declare) {
  declare("Top P", "P", o.top_p, "Nucleus sampling; 1: off").above(0).at_most(1);
  declare("Top K", "K", o.top_k, "Sample from the k most likely ids only; 0: off").at_least(0);
  declare("Min P", "P", o.min_p,
          "Sample only from ids with at least this share of the largest probability; 0: off")
      .at_least(0)
      .at_most(1);
}

// How tokens are drawn if the answer to a prompt may be greedy: not in rollouts.
template <class Declare>
void describe_sampling(SamplingOptions& o, Declare declare) {
  declare("Temperature", "T", o.temperature, "Softmax temperature; 0: greedy").at_least(0);
  describe_truncation(o, declare);
  declare("Repetition Penalty", "P", o.repetition_penalty,
          "Divides the positive and multiplies the negative logits of ids that have already "
          "occurred; 1: off")
      .above(0);
}

template <class Declare>
void describe_sizing(EngineSizing& o, Declare declare) {
  declare("Max Running", "N", o.max_running,
          "Sequences in flight per replica; if the layout may change, per replica of the smallest "
          "degree, and proportionally more in larger groups")
      .at_least(1)
      .at_most(kMostRunning);
  declare("Step Rows", "N", o.step_rows, "Tokens per step, decode and prefill together")
      .at_least(1)
      .at_most(kMostStepRows);
  declare("KV Memory MB", "MB", o.kv_memory_mb, "Largest KV cache per rank in MiB")
      .above(0)
      .at_most(kMostKvMemoryMb);
}

template <class Declare>
void describe_drafts(SpeculationOptions& o, Declare declare) {
  declare("Draft Length", "N", o.draft_length, "Tokens of a draft, at most")
      .at_least(1)
      .at_most(64);
  declare("Index MB", "MB", o.index_mb,
          "Memory of a rank for the responses of earlier generations, from which drafts are made, "
          "in MiB")
      .at_least(0)
      .at_most(8192);
}

inline constexpr const char* kDraftModelDoc =
    "Hugging Face directory of a smaller model with the same tokens that drafts, too; empty: none";
inline constexpr const char* kDraftPlacementDoc =
    "Where the draft model runs. sequence: on each rank of a replica by itself, for a part of the "
    "sequences; tensor: tensor-parallel over the ranks of a replica; layer: windows of its layers "
    "over "
    "them, approximately (EasySpec)";

inline constexpr const char* kExitsDoc =
    "Directory of early exits of the model (taper exits), which draft, too; empty: none";

}  // namespace taper
