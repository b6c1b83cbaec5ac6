// SPDX-License-Identifier: Apache-2.0
#include "study/SimulateOptions.hpp"

namespace taper {
namespace {

void describe_link(param::Section section, LinkDescription& o) {
  section
      .number("Base us", o.base_us,
              "Fixed time of an all-reduce in microseconds, without hops and data")
      .at_least(0);
  section.number("Hop us", o.hop_us, "Time of each hop of an all-reduce in microseconds")
      .at_least(0);
  section
      .number("Bandwidth", o.gb_s,
              "Bandwidth per rank in one direction that all-reduces reach, in 1e9 bytes per second")
      .above(0);
  section.choice("All-Reduce", o.form, "Hops for n ranks: ring: 2 (n - 1); tree: 2 log2(n)",
                 {{"ring", AllReduceForm::kRing}, {"tree", AllReduceForm::kTree}});
}

void describe_device(param::Section s, DeviceDescription& o) {
  s.number("Peak TFLOPS", o.tflops,
           "Peak rate of dense products in the type of the weights, in 1e12 operations per second")
      .above(0);
  s.number("Product Efficiency", o.product_efficiency, "Share of the peak rate that products reach")
      .above(0)
      .at_most(1);
  s.number("Memory Bandwidth", o.memory_gb_s, "Memory bandwidth in 1e9 bytes per second").above(0);
  s.number("Memory Efficiency", o.memory_efficiency,
           "Share of the memory bandwidth that kernels reach")
      .above(0)
      .at_most(1);
  s.number("Memory GB", o.memory_gb, "Memory in 1e9 bytes").above(0);
  s.number("Memory Share", o.memory_share, "Share of the memory for weights and the KV cache")
      .above(0)
      .at_most(1);
  s.number("Step us", o.step_us, "Time of a step in microseconds, without its layers").at_least(0);
  s.number("Layer us", o.layer_us,
           "Time of a layer in microseconds, without products, attention and exchanges")
      .at_least(0);
  s.number("Sequence us", o.sequence_us,
           "Host time per sequence of a step in microseconds that does not overlap with the device")
      .at_least(0);
  s.number("Sampling Bytes", o.sampling_bytes,
           "Bytes read and written per vocabulary entry and sequence, on each rank")
      .at_least(0);
}

void describe_machine(param::Section& schema, MachineDescription& o) {
  auto s = schema.section("Machine", "Description of the machine");
  s.text("Name", o.name, "Name in tables");
  s.integer("Ranks", o.ranks, "Number of devices that generate").between(1, 4096);
  s.integer("Ranks Per Node", o.ranks_per_node, "Devices per node").at_least(1);
  describe_device(s.section("Device", "The device of one rank"), o.device);
  describe_link(s.section("Inside", "Exchanges within a node"), o.inside);
  describe_link(s.section("Between", "Exchanges between nodes"), o.between);
  s.check([&o] { return o.problems(); });
}

void describe_model(param::Section& schema, ModelDescription& o) {
  auto s = schema.section("Model", "The shape of the model");
  s.text("Name", o.name, "Name in tables");
  s.integer("Layers", o.layers, "Transformer layers").at_least(1);
  s.integer("Hidden", o.hidden, "Hidden size").at_least(1);
  s.integer("Heads", o.heads, "Query heads").at_least(1);
  s.integer("KV Heads", o.kv_heads, "Key and value heads").at_least(1);
  s.integer("Head Size", o.head_size, "Width of a head").at_least(1);
  s.integer("MLP", o.mlp, "Width of the gated MLP").at_least(1);
  s.integer("Vocabulary", o.vocabulary, "Number of rows of the output head").at_least(1);
  s.flag("Tied", o.tied, "Embedding and output head are one tensor");
  s.integer("Weight Bytes", o.weight_bytes, "Bytes per weight").between(1, 8);
  s.integer("KV Bytes", o.kv_bytes, "Bytes per number in the KV cache").between(1, 8);
  s.check([&o] { return o.problems(); });
}

void describe_generation(param::Section& schema, GenerationDescription& o) {
  auto s = schema.section("Generation", "What is generated in an iteration");
  s.integer("Prompts Per Rank", o.prompts_per_rank, "Prompts per rank").at_least(1);
  s.integer("Samples Per Prompt", o.samples, "Responses per prompt").at_least(1);
  s.integer("Prompt Tokens", o.prompt_tokens, "Length of each prompt in tokens").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response in tokens").at_least(2);
  s.integer("Long Tokens", o.lengths.long_tokens, "Responses of more tokens count as long")
      .at_least(1);
  s.number("Long Share", o.lengths.long_share, "Share of long responses").above(0).below(1);
  s.number("Spread", o.lengths.spread,
           "Standard deviation of the logarithm of the (log-normal) lengths")
      .above(0);
  s.number("Likeness", o.lengths.likeness,
           "Correlation of the logarithms of lengths within the samples of a prompt")
      .between(0, 1);
  s.integer("Max Running", o.max_running, "Sequences in flight per rank, if memory allows")
      .at_least(1);
  s.number("Share", o.share,
           "Share of generation in the time of an iteration, in the best static layout; 0: as the "
           "section Training makes it")
      .between(0, 1);
  auto d = s.section("Drafts", "Speculation, with the draft length that is fastest");
  d.number("Coverage", o.drafts.coverage, "Share of sequences that have a draft; 0: no speculation")
      .between(0, 1);
  d.number("Acceptance", o.drafts.acceptance,
           "Probability that a guess is right if those before it were")
      .between(0, 1);
}

void describe_training(param::Section& schema, TrainingDescription& o) {
  auto s = schema.section("Training",
                          "What an iteration does beside its generation; all models have the shape "
                          "of Model");
  s.flag("Reference", o.reference, "There is a reference model");
  s.flag("Critic", o.critic, "There is a critic, which learns too");
  s.integer("Reward Models", o.reward_models, "Models that score responses").between(0, 16);
  s.integer("Mini Batches", o.mini_batches, "Optimizer steps per epoch").at_least(1);
  s.integer("Epochs", o.epochs, "Passes over the responses").at_least(1);
  s.integer("Micro Batch", o.micro_batch, "Tokens of a micro-batch").at_least(1);
}

void describe_switching(param::Section& schema, SimulateOptions& o) {
  auto s =
      schema.section("Switching", "Cost of a change of layout, without moving keys and values");
  s.number("Meeting ms", o.switching.meeting_ms, "Time of a meeting, without its exchanges")
      .at_least(0);
  s.number("Graphs ms", o.switching.graphs_ms, "Time for captured graphs; 0 if they are kept")
      .at_least(0);
  auto one = schema.section(
      "One Switch",
      "Published times of a switch in seconds, used by the stand-in for the published rule");
  one.number("KV", o.one_switch.kv, "Moving all of the KV cache").at_least(0);
  one.number("Weights", o.one_switch.weights, "New shards of the weights").at_least(0);
  one.number("Graphs", o.one_switch.graphs, "Captured graphs").at_least(0);
  one.number("Other", o.one_switch.other, "The rest").at_least(0);
}

void describe_play(param::Section& schema, PlayDescription& o) {
  auto s = schema.section("Play", "What to simulate");
  s.list("Degrees", o.degrees, "Tensor-parallel degrees; empty: all possible ones");
  s.integer("Seeds", o.seeds, "Independent runs").at_least(1);
  s.integer("Warm Up", o.warm_up,
            "Generations of a run from which the planners learn, but which do not count")
      .at_least(0);
  s.integer("Iterations", o.iterations, "Generations of a run that count").at_least(1);
  s.integer("Oracle Points", o.oracle_grid,
            "Points in time at which the oracle may switch; 0: no oracle")
      .at_least(0);
  s.integer("Seed", o.seed, "Seed of lengths and scenarios").at_least(0);
}

void describe_published(param::Section& schema, PublishedFigures& o) {
  auto s = schema.section("Published", "Published results for this case; 0: none");
  s.number("Speed Up", o.speed_up, "Speed-up of the iteration by the rule with one switch")
      .at_least(0);
  s.number("Generation Saved", o.generation_saved,
           "Share of the generation time that this rule saves")
      .between(0, 1);
  s.number("Tokens Per Second", o.tokens_per_second,
           "Tokens per second and rank over the iteration, in the best static layout")
      .at_least(0);
}

}  // namespace

void describe(param::Section& schema, SimulateOptions& options) {
  describe_machine(schema, options.machine);
  describe_model(schema, options.model);
  describe_generation(schema, options.generation);
  describe_training(schema, options.training);
  describe_switching(schema, options);
  describe_play(schema, options.play);
  describe_published(schema, options.published);
  schema.check([&options] { return options.problems(); });
}

}  // namespace taper
