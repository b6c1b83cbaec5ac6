// SPDX-License-Identifier: Apache-2.0
//
// profile.h5, as of profile/ProfileFile.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using enum StoredType;

void add_errors(std::vector<DatasetRule>& list, const std::string& group, const std::string& size,
                const std::string& of) {
  list.push_back({group + "/tp", kI32, {size}, "1", "tensor-parallel degree"});
  list.push_back({group + "/pair", kI32, {size}, "1", "0: ranks share a node, 1: they do not"});
  list.push_back({group + "/p50", kI64, {size}, "1e-6", "median of the relative errors", of});
  list.push_back({group + "/p90", kI64, {size}, "1e-6", "90th percentile"});
  list.push_back({group + "/p95", kI64, {size}, "1e-6", "95th percentile"});
  list.push_back({group + "/max", kI64, {size}, "1e-6", "largest"});
}

void add_steps(std::vector<DatasetRule>& list) {
  const std::vector<std::string> points{"points"};
  list.push_back({"/steps/tp", kI32, points, "1", "tensor-parallel degree"});
  list.push_back({"/steps/pair", kI32, points, "1", "0: ranks share a node, 1: they do not"});
  list.push_back({"/steps/new_tokens", kI32, points, "tokens", "rows of the step",
                  "; in decode steps as many as sequences"});
  list.push_back({"/steps/sequences", kI32, points, "1", "sequences in the step"});
  list.push_back(
      {"/steps/context", kI64, points, "tokens", "summed context lengths after the step"});
  list.push_back({"/steps/time_ns", kI64, points, "ns",
                  "time of the step: median over visits of the mean of their steps",
                  " (stalls cut)"});
  list.push_back(
      {"/steps/spread_ns", kI64, points, "ns", "upper minus lower quartile of the repeats"});
  list.push_back({"/steps/repeats", kI32, points, "1", "measurements"});
}

FileSchema make_schema() {
  FileSchema s{.format = "taper-profile", .version = 2, .file = "profile.h5"};
  s.attributes = {
      {"/", "ranks", kI64, "of the job that measured"},
      {"/", "ranks_per_node", kI64, "the same"},
      {"/", "measured_percent", kI64,
       "of the planned measuring that is done: 100 is complete, as is a file without it", "percent",
       Presence::kMaybe},
      {"/", "content_hash", kI64, "of everything in it: damage is an error at reading"},
      {"/identity/model", "<fact>", kText, "facts that must be the same where it is used"},
      {"/identity/machine", "<fact>", kText, "the same"},
      {"/identity/transport", "<fact>", kText, "the same"},
      {"/identity/build", "<fact>", kText, "facts whose change is a warning", "-",
       Presence::kMaybe},
      {"/identity/clock", "<fact>", kText, "the same", "-", Presence::kMaybe},
      {"/switching", "groups_ns", kI64, "finding cached groups", "ns"},
      {"/switching", "weights_ns", kI64, "making views of weights", "ns"},
      {"/switching", "graphs_ns", kI64, "captured graphs; none on CPUs", "ns"},
      {"/switching", "kv_bytes_per_position", kI64,
       "keys and values of one position, all layers and heads", "byte"},
      {"/switching", "block_size", kI64, "a page of the KV cache; pages move whole", "positions"}};
  auto& d = s.datasets;
  add_steps(d);
  d.push_back(
      {"/switching/moves/pair", kI32, {"classes"}, "1", "0: ranks share a node, 1: they do not"});
  d.push_back({"/switching/moves/latency_ns",
               kI64,
               {"classes"},
               "ns",
               "of moving KV data between two ranks"});
  d.push_back({"/switching/moves/ps_per_byte",
               kI64,
               {"classes"},
               "ps/byte",
               "of moving KV data between two ranks"});
  d.push_back({"/switching/rendezvous/ranks", kI32, {"meetings"}, "1", "that meet"});
  d.push_back({"/switching/rendezvous/ns",
               kI64,
               {"meetings"},
               "ns",
               "time of a meeting",
               ": the plan from rank 0 and the meeting of all ranks"});
  add_errors(d, "/fit_errors", "degrees", " of interpolation at points that are left out");
  add_errors(d, "/repeat_noise", "degrees again", " of the even against the odd visits of a point");
  return s;
}

}  // namespace

const FileSchema& profile_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
