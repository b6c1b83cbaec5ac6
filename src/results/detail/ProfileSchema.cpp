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
  list.push_back({group + "/max", kI64, {size}, "1e-6", "maximum"});
}

void add_steps(std::vector<DatasetRule>& list, const std::string& group, const std::string& size,
               const std::string& new_tokens, const std::string& context, Presence presence) {
  const auto add = [&](const char* name, StoredType type, const char* units,
                       const std::string& description, const std::string& more = {}) {
    list.push_back({group + "/" + name, type, {size}, units, description, more, presence});
  };
  add("tp", kI32, "1", "tensor-parallel degree");
  add("pair", kI32, "1", "0: ranks share a node, 1: they do not");
  add("new_tokens", kI32, "tokens", "new tokens of the step", new_tokens);
  add("sequences", kI32, "1", "sequences in the step");
  add("context", kI64, "tokens", "sum of the context lengths after the step", context);
  add("time_ns", kI64, "ns", "time of the step: median over visits of the mean of their steps",
      " (a stalled step counts as three median ones)");
  add("spread_ns", kI64, "ns", "upper minus lower quartile of the measured steps");
  add("repeats", kI32, "1", "number of measured steps");
}

void add_passes(std::vector<DatasetRule>& list) {
  const auto add = [&](const char* name, StoredType type, const char* units,
                       const std::string& description) {
    list.push_back({std::string("/passes/") + name,
                    type,
                    {"passes"},
                    units,
                    description,
                    "",
                    Presence::kMaybe});
  };
  add("kind", kI32, "1", "0: forward pass, 1: forward and backward pass, 2: optimizer step");
  add("tp", kI32, "1", "tensor-parallel degree");
  add("pair", kI32, "1", "0: ranks share a node, 1: they do not");
  add("replicas", kI32, "1", "replicas of an optimizer step, which sum their gradients");
  add("rows", kI32, "tokens", "tokens of the pass; 0 for an optimizer step");
  add("targets", kI32, "tokens", "tokens whose log-probs are computed");
  add("length", kI32, "tokens", "length of its sequences");
  add("time_ns", kI64, "ns", "median time");
  add("spread_ns", kI64, "ns", "upper minus lower quartile of the measured times");
  add("repeats", kI32, "1", "number of measured times");
}

FileSchema make_schema() {
  FileSchema s{.format = "taper-profile", .version = 2, .file = "profile.h5"};
  s.attributes = {
      {"/", "ranks", kI64, "ranks of the job that measured"},
      {"/", "ranks_per_node", kI64, "its ranks per node"},
      {"/", "measured_percent", kI64,
       "share of the planned measurements that is done; 100 or absent: complete", "percent",
       Presence::kMaybe},
      {"/", "content_hash", kI64,
       "hash of the whole content; a damaged file is an error when it is read"},
      {"/identity/model", "<fact>", kText,
       "facts that must be the same in a run that uses the profile"},
      {"/identity/machine", "<fact>", kText, "likewise"},
      {"/identity/transport", "<fact>", kText, "likewise"},
      {"/identity/build", "<fact>", kText, "facts whose change causes a warning", "-",
       Presence::kMaybe},
      {"/identity/clock", "<fact>", kText, "likewise", "-", Presence::kMaybe},
      {"/switching", "groups_ns", kI64, "time for finding the cached groups", "ns"},
      {"/switching", "weights_ns", kI64, "time for making the views of the weights", "ns"},
      {"/switching", "graphs_ns", kI64,
       "time for captured graphs; measured ones are 0: they stay valid", "ns"},
      {"/switching", "kv_bytes_per_position", kI64,
       "keys and values of one position, all layers and heads", "byte"},
      {"/switching", "block_size", kI64,
       "length of a page of the KV cache; pages are moved as a whole", "positions"}};
  auto& d = s.datasets;
  add_steps(d, "/steps", "points", "; in decode steps one per sequence", "", Presence::kAlways);
  add_steps(d, "/verify", "verified points",
            ": one per sequence and as many guesses of each ([speculation.md](speculation.md))",
            ", without the guesses", Presence::kMaybe);
  add_passes(d);
  d.push_back(
      {"/switching/moves/pair", kI32, {"classes"}, "1", "0: ranks share a node, 1: they do not"});
  d.push_back({"/switching/moves/latency_ns",
               kI64,
               {"classes"},
               "ns",
               "latency of moving KV data between two ranks"});
  d.push_back({"/switching/moves/ps_per_byte",
               kI64,
               {"classes"},
               "ps/byte",
               "time per byte of moving KV data between two ranks"});
  d.push_back(
      {"/switching/rendezvous/ranks", kI32, {"meetings"}, "1", "number of ranks that meet"});
  d.push_back({"/switching/rendezvous/ns",
               kI64,
               {"meetings"},
               "ns",
               "time of a meeting",
               ": rank 0 sends the plan, and all ranks meet"});
  add_errors(d, "/fit_errors", "degrees", " of interpolation at left-out points");
  add_errors(d, "/repeat_noise", "noise degrees",
             " between the even and the odd visits of a point");
  return s;
}

}  // namespace

const FileSchema& profile_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
