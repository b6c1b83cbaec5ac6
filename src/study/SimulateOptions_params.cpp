// SPDX-License-Identifier: Apache-2.0
#include "study/SimulateOptions.hpp"

namespace taper {
namespace {

void describe_link(param::Section section, LinkDescription& o) {
  section.number("Base us", o.base_us, "Microseconds of an all-reduce, beside its hops and data")
      .at_least(0);
  section.number("Hop us", o.hop_us, "Microseconds of each hop of an all-reduce").at_least(0);
  section
      .number("Bandwidth", o.gb_s,
              "1e9 bytes per second of a rank in one direction, as all-reduces reach it")
      .above(0);
  section.choice("All-Reduce", o.form, "Hops of n ranks: 2 (n - 1) or 2 log2(n)",
                 {{"ring", AllReduceForm::kRing}, {"tree", AllReduceForm::kTree}});
}

void describe_device(param::Section s, DeviceDescription& o) {
  s.number("Peak TFLOPS", o.tflops, "1e12 per second of dense products in the type of the weights")
      .above(0);
  s.number("Product Efficiency", o.product_efficiency, "Share of it that products reach")
      .above(0)
      .at_most(1);
  s.number("Memory Bandwidth", o.memory_gb_s, "Memory bandwidth, 1e9 bytes per second").above(0);
  s.number("Memory Efficiency", o.memory_efficiency, "Share of it that kernels reach")
      .above(0)
      .at_most(1);
  s.number("Memory GB", o.memory_gb, "Memory, 1e9 bytes").above(0);
  s.number("Memory Share", o.memory_share, "Of it for weights and the KV cache")
      .above(0)
      .at_most(1);
  s.number("Step us", o.step_us, "Microseconds of a step beside its layers").at_least(0);
  s.number("Layer us", o.layer_us, "Microseconds of a layer beside products, attention, exchanges")
      .at_least(0);
  s.number("Sequence us", o.sequence_us,
           "Microseconds of each sequence of a step on the host, which nothing hides")
      .at_least(0);
  s.number("Sampling Bytes", o.sampling_bytes,
           "Read and written per vocabulary entry and sequence, on each rank")
      .at_least(0);
}

void describe_machine(param::Section& schema, MachineDescription& o) {
  auto s = schema.section("Machine", "The machine, by figures");
  s.text("Name", o.name, "For tables");
  s.integer("Ranks", o.ranks, "Devices that generate").between(1, 4096);
  s.integer("Ranks Per Node", o.ranks_per_node, "Devices of a node").at_least(1);
  describe_device(s.section("Device", "Of one rank"), o.device);
  describe_link(s.section("Inside", "Exchanges within a node"), o.inside);
  describe_link(s.section("Between", "Exchanges between nodes"), o.between);
  s.check([&o] { return o.problems(); });
}

void describe_model(param::Section& schema, ModelDescription& o) {
  auto s = schema.section("Model", "The shape of the model");
  s.text("Name", o.name, "For tables");
  s.integer("Layers", o.layers, "Transformer layers").at_least(1);
  s.integer("Hidden", o.hidden, "Width").at_least(1);
  s.integer("Heads", o.heads, "Query heads").at_least(1);
  s.integer("KV Heads", o.kv_heads, "Heads of keys and values").at_least(1);
  s.integer("Head Size", o.head_size, "Width of a head").at_least(1);
  s.integer("MLP", o.mlp, "Width of the gated MLP").at_least(1);
  s.integer("Vocabulary", o.vocabulary, "Rows of the output head").at_least(1);
  s.flag("Tied", o.tied, "Embedding and output head are one tensor");
  s.integer("Weight Bytes", o.weight_bytes, "Of one weight").between(1, 8);
  s.integer("KV Bytes", o.kv_bytes, "Of one number of the KV cache").between(1, 8);
  s.check([&o] { return o.problems(); });
}

void describe_generation(param::Section& schema, GenerationDescription& o) {
  auto s = schema.section("Generation", "What is generated in an iteration");
  s.integer("Prompts Per Rank", o.prompts_per_rank, "Prompts by number of ranks").at_least(1);
  s.integer("Samples Per Prompt", o.samples, "Responses to a prompt").at_least(1);
  s.integer("Prompt Tokens", o.prompt_tokens, "Of each prompt").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response").at_least(2);
  s.integer("Long Tokens", o.lengths.long_tokens, "What counts as a long response").at_least(1);
  s.number("Long Share", o.lengths.long_share, "Share of the responses that are longer")
      .above(0)
      .below(1);
  s.number("Spread", o.lengths.spread,
           "Standard deviation of the logarithm of the lengths, which are log-normal")
      .above(0);
  s.number("Likeness", o.lengths.likeness,
           "Correlation of the logarithms within the samples of a prompt")
      .between(0, 1);
  s.integer("Max Running", o.max_running, "Sequences in flight per rank, as far as memory goes")
      .at_least(1);
  s.number("Share", o.share,
           "Share of generation in the iteration, in the static layout that is best")
      .above(0)
      .at_most(1);
}

void describe_switching(param::Section& schema, SimulateOptions& o) {
  auto s =
      schema.section("Switching", "What a change of layout costs beside moving keys and values");
  s.number("Meeting ms", o.switching.meeting_ms, "Of a meeting, beside its exchanges").at_least(0);
  s.number("Graphs ms", o.switching.graphs_ms, "Of captured graphs; they are kept").at_least(0);
  auto one = schema.section(
      "One Switch",
      "Seconds of a switch of the stand-in for the published rule, as published for it");
  one.number("KV", o.one_switch.kv, "Moving all of the KV cache").at_least(0);
  one.number("Weights", o.one_switch.weights, "New shards of the weights").at_least(0);
  one.number("Graphs", o.one_switch.graphs, "Captured graphs").at_least(0);
  one.number("Other", o.one_switch.other, "The rest").at_least(0);
}

void describe_play(param::Section& schema, PlayDescription& o) {
  auto s = schema.section("Play", "How many generations are played");
  s.list("Degrees", o.degrees, "Tensor-parallel degrees; empty: all that are possible");
  s.integer("Seeds", o.seeds, "Independent runs").at_least(1);
  s.integer("Warm Up", o.warm_up, "Generations of a run that the planners only learn from")
      .at_least(0);
  s.integer("Iterations", o.iterations, "Generations of a run that count").at_least(1);
  s.integer("Oracle Points", o.oracle_grid,
            "Points in time at which the oracle may switch; 0 leaves it out")
      .at_least(0);
  s.integer("Seed", o.seed, "Of lengths and scenarios").at_least(0);
}

void describe_published(param::Section& schema, PublishedFigures& o) {
  auto s = schema.section("Published", "What was published for such a case; 0: nothing");
  s.number("Speed Up", o.speed_up, "Of the iteration, by the rule with one switch").at_least(0);
  s.number("Generation Saved", o.generation_saved, "Share of the generation time it saves")
      .between(0, 1);
  s.number("Tokens Per Second", o.tokens_per_second,
           "Of a rank over the iteration, in the best static layout")
      .at_least(0);
}

}  // namespace

void describe(param::Section& schema, SimulateOptions& options) {
  describe_machine(schema, options.machine);
  describe_model(schema, options.model);
  describe_generation(schema, options.generation);
  describe_switching(schema, options);
  describe_play(schema, options.play);
  describe_published(schema, options.published);
  schema.check([&options] { return options.problems(); });
}

}  // namespace taper
