// SPDX-License-Identifier: Apache-2.0
#include "simulate/Roofline.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "shard/RankGrid.hpp"

namespace taper {
namespace {

// 1e9 bytes per second are bytes per nanosecond; so are 1e12 operations per second, by 1000.
constexpr double kMicro = 1000, kTera = 1000;

double hops(AllReduceForm form, int ranks) {
  return form == AllReduceForm::kRing ? 2.0 * (ranks - 1)
                                      : 2.0 * std::bit_width(static_cast<unsigned>(ranks - 1));
}

// Of an all-reduce within one kind of link, without the base.
double exchange_ns(const LinkDescription& link, int ranks, double bytes) {
  if (ranks < 2) return 0;
  return hops(link.form, ranks) * link.hop_us * kMicro +
         2.0 * (ranks - 1) / ranks * bytes / link.gb_s;
}

// What the rank with most has of `units`, as a share.
double share_of(int units, int ranks) {
  const int most = (units + ranks - 1) / ranks;
  return static_cast<double>(most) / units;
}

struct Shards {
  double attention, kv, even;
};

// Attention is cut at KV heads; above their number at query heads, a KV head then has several
// owners.
Shards shards_of(const ModelDescription& model, int tp) {
  const bool by_kv = tp <= model.kv_heads;
  return {share_of(by_kv ? model.kv_heads : model.heads, tp),
          by_kv ? share_of(model.kv_heads, tp) : 1.0 / model.kv_heads, 1.0 / tp};
}

std::int64_t whole(double ns) {
  return std::max<std::int64_t>(1, std::llround(ns));
}

std::vector<int> batches_up_to(int sequences) {
  std::vector<int> list;
  for (int b = 1; b < 2 * sequences; b *= 2)
    for (const int quarter : {4, 5, 6, 7})
      if (b * quarter % 4 == 0) list.push_back(b * quarter / 4);
  return list;
}

void add_steps(LatencyProfile& profile, const MachineDescription& machine,
               const ModelDescription& model, int tp, const ProfileReach& reach) {
  const PairClass pair = profile.pair_of(0, tp);
  const auto add = [&](int new_tokens, int sequences, std::int64_t context) {
    const double ns =
        step_ns(machine, model, tp, {new_tokens, sequences, static_cast<double>(context)});
    profile.steps.push_back({tp, pair, new_tokens, sequences, context, whole(ns), 0, 1});
  };
  for (const int b : batches_up_to(reach.sequences))
    for (const int context : {1, reach.context}) add(b, b, std::int64_t{b} * context);
  for (int rows = 64; rows <= 8192; rows *= 2)
    for (const int context : {8192 + 1, 8192 + reach.context}) add(rows + 1, 1, context);
  for (int b = 1; b < 2 * reach.sequences; b *= 4)
    for (const int guesses : {b, 3 * b, 7 * b})
      for (const int each : {1, reach.context}) {
        const std::int64_t context = std::int64_t{b} * each;
        const double ns =
            step_ns(machine, model, tp, {b + guesses, b, static_cast<double>(context), guesses});
        profile.verify.push_back({tp, pair, b + guesses, b, context, whole(ns), 0, 1});
      }
}

void add_passes(LatencyProfile& profile, const MachineDescription& machine,
                const ModelDescription& model, int tp) {
  PassSample sample;
  sample.tp = tp;
  sample.repeats = 1;
  sample.pair = profile.pair_of(0, tp);
  for (const PassKind kind : {PassKind::kForward, PassKind::kLearn})
    for (const int rows : {1024, 16384})
      for (const int length : {512, 8192})
        for (const bool with_targets : {false, true}) {
          sample.kind = kind;
          sample.rows = rows;
          sample.length = length;
          sample.targets = with_targets ? rows : 0;
          sample.time_ns = whole(pass_ns(machine, model, tp, sample));
          profile.passes.push_back(sample);
        }
  sample.kind = PassKind::kUpdate;
  sample.rows = sample.targets = sample.length = 0;
  const DivisorChain chain = DivisorChain::of(machine.ranks);
  for (const int ranks : chain.degrees()) {
    if (ranks % tp != 0) continue;
    sample.replicas = ranks / tp;
    sample.pair = profile.pair_of(0, ranks);
    sample.time_ns = whole(update_ns(machine, model, tp, sample.replicas));
    profile.passes.push_back(sample);
  }
}

}  // namespace

double all_reduce_ns(const MachineDescription& machine, int ranks, double bytes) {
  if (ranks < 2) return 0;
  const int inside = std::min(ranks, machine.ranks_per_node);
  const int nodes = (ranks + inside - 1) / inside;
  const double base = std::max(inside > 1 ? machine.inside.base_us : 0.0,
                               nodes > 1 ? machine.between.base_us : 0.0);
  return base * kMicro + exchange_ns(machine.inside, inside, bytes) +
         exchange_ns(machine.between, nodes, bytes / inside);
}

double step_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
               const StepWork& work) {
  const DeviceDescription& d = machine.device;
  const Shards part = shards_of(model, tp);
  const double bytes_per_ns = d.memory_gb_s * d.memory_efficiency;
  const double operations_per_ns = d.tflops * kTera * d.product_efficiency;
  const double blocks = model.layers * (model.attention_parameters() * part.attention +
                                        model.mlp_parameters() * part.even);
  const double head = model.head_parameters() * part.even;
  const double stream = (blocks + head) * model.weight_bytes / bytes_per_ns;
  const int draws = work.sequences + work.drafted;
  const double products = 2 * (blocks * work.new_tokens + head * draws) / operations_per_ns;
  // Decode rows see their context once; rows of a prompt and guesses that of their sequence.
  const double seen = work.context + (work.new_tokens - work.sequences) * work.context /
                                         std::max(1, work.sequences);
  const double kv =
      work.context * static_cast<double>(model.kv_bytes_per_position()) * part.kv / bytes_per_ns;
  const double scores = 4.0 * model.layers * model.heads * model.head_size * part.attention * seen /
                        operations_per_ns;
  const double logits = 1.0 * draws * model.vocabulary;
  const double gather =
      tp > 1 ? logits * model.weight_bytes * (tp - 1) / tp /
                   (tp > machine.ranks_per_node ? machine.between.gb_s : machine.inside.gb_s)
             : 0;
  const double rows = 1.0 * work.new_tokens * model.hidden * model.weight_bytes;
  return std::max(stream, products) + std::max(kv, scores) +
         logits * d.sampling_bytes / bytes_per_ns + gather +
         2 * model.layers * all_reduce_ns(machine, tp, rows) +
         (d.step_us + d.layer_us * model.layers + d.sequence_us * work.sequences) * kMicro;
}

double pass_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
               const PassSample& work) {
  const DeviceDescription& d = machine.device;
  const Shards part = shards_of(model, tp);
  const double passes = work.kind == PassKind::kLearn ? 3 : 1;
  const double operations_per_ns = d.tflops * kTera * d.product_efficiency;
  const double blocks = model.layers * (model.attention_parameters() * part.attention +
                                        model.mlp_parameters() * part.even);
  const double head = model.head_parameters() * part.even;
  const double products = 2 * (blocks * work.rows + head * work.targets);
  // A row sees half of its sequence on average.
  const double scores = 4.0 * model.layers * model.heads * model.head_size * part.attention *
                        work.rows * (0.5 * work.length);
  const double logits = 1.0 * work.targets * model.vocabulary * part.even * d.sampling_bytes /
                        (d.memory_gb_s * d.memory_efficiency);
  const double rows = 1.0 * work.rows * model.hidden * model.weight_bytes;
  const double reduces = work.kind == PassKind::kLearn ? 4 : 2;  // of a layer
  return passes * (products + scores) / operations_per_ns + logits +
         reduces * model.layers * all_reduce_ns(machine, tp, rows) +
         (d.step_us + passes * d.layer_us * model.layers) * kMicro;
}

double update_ns(const MachineDescription& machine, const ModelDescription& model, int tp,
                 int replicas) {
  const DeviceDescription& d = machine.device;
  const double shard = model.parameters() / tp;
  // Ranks with the same shard: every tp-th one. Half an all-reduce brings sums to their owners, or
  // what they own to all.
  MachineDescription strided = machine;
  strided.ranks_per_node = std::max(1, machine.ranks_per_node / tp);
  const double exchange = 0.5 * (all_reduce_ns(strided, replicas, shard * 8) +
                                 all_reduce_ns(strided, replicas, shard * 4));
  // Gradients are cleared and read, masters and both moments are read and written, weights written.
  const double bytes = shard * (2 * 8 + model.weight_bytes) + shard / replicas * 2 * 12;
  return exchange + bytes / (d.memory_gb_s * d.memory_efficiency) + d.step_us * kMicro;
}

double kv_pool_bytes(const MachineDescription& machine, const ModelDescription& model, int tp) {
  return machine.device.memory_gb * 1e9 * machine.device.memory_share -
         model.parameters() * model.weight_bytes / tp;
}

std::vector<int> possible_degrees(const MachineDescription& machine,
                                  const ModelDescription& model) {
  std::vector<int> degrees;
  const DivisorChain chain = DivisorChain::of(machine.ranks);
  for (const int tp : chain.degrees())
    if (tp <= model.kv_heads && kv_pool_bytes(machine, model, tp) > 0) degrees.push_back(tp);
  return degrees;
}

LatencyProfile describe_profile(const MachineDescription& machine, const ModelDescription& model,
                                const SwitchDescription& switching, const std::vector<int>& degrees,
                                const ProfileReach& reach) {
  LatencyProfile profile;
  profile.identity.model = {{"name", model.name}};
  profile.identity.machine = {{"name", machine.name + " (described)"}};
  profile.ranks = machine.ranks;
  profile.ranks_per_node = machine.ranks_per_node;
  profile.kv_bytes_per_position = model.kv_bytes_per_position();
  for (const int tp : degrees) {
    add_steps(profile, machine, model, tp, reach);
    add_passes(profile, machine, model, tp);
  }
  const auto move = [&](PairClass pair, const LinkDescription& link) {
    const double latency = (link.base_us + link.hop_us) * model.layers * kMicro;
    profile.moves.push_back({pair, whole(latency), whole(1000 / link.gb_s)});
  };
  move(PairClass::kSameNode, machine.inside);
  if (machine.nodes() > 1) move(PairClass::kOtherNode, machine.between);
  // Plan and hash are compared, sequence lists exchanged: a few small exchanges.
  const DivisorChain chain = DivisorChain::of(machine.ranks);
  for (const int ranks : chain.degrees()) {
    const double ns = switching.meeting_ms * 1e6 + 4 * all_reduce_ns(machine, ranks, 4096);
    profile.rendezvous.push_back({ranks, ranks == 1 ? 0 : whole(ns)});
  }
  profile.graphs_ns = std::llround(switching.graphs_ms * 1e6);
  return profile;
}

}  // namespace taper
