// SPDX-License-Identifier: Apache-2.0
//
// Generates the same responses without drafts, with drafts where they pay and with drafts always,
// in turns within one job, and prints one JSON line per pass over the prompts: seconds of each,
// tokens per sequence and step, right guesses by source, and all of it by the number of sequences
// in a step. Tokens and log-probs of all of them must be equal bit for bit.
//
// A pass has random numbers of its own (with --temperature 0 all passes give the same responses);
// each contestant drafts from what it has generated itself in the passes before.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "data/PromptEncoder.hpp"
#include "data/PromptSource.hpp"
#include "device/Runtime.hpp"
#include "instance/InferenceModel.hpp"
#include "io/Json.hpp"
#include "param/CommandLine.hpp"
#include "rollout/Generator.hpp"
#include "session/Guard.hpp"
#include "session/Startup.hpp"

using namespace taper;

namespace {

struct BenchOptions {
  std::string model, prompts, task;
  WeightType type = WeightType::kBf16;
  std::vector<std::string> modes;  // of Speculation/Mode; empty: all
  int passes = 3, count = 0, samples = 1, max_new_tokens = 256, max_running = 64, tp = 1;
  int draft_length = SpeculationOptions().draft_length;
  bool new_prompts = false;
  SamplingOptions sampling;
  double kv_memory_mb = 512;
};

// A way to generate, with its generator.
struct Contestant {
  std::string name;
  std::unique_ptr<Generator> generator;
};

class SpeculationBench {
 public:
  SpeculationBench(const BenchOptions& options, ModelFiles& files, const Ranks& ranks)
      : options_(options), files_(files), ranks_(ranks), model_("model", files, ranks, options.tp) {
    read_prompts();
    model_.add_memory(plan_, options.type);
    for (const auto& [name, mode] : named_speculation_modes()) {
      const auto& modes = options.modes;
      if (!modes.empty() && std::find(modes.begin(), modes.end(), name) == modes.end()) continue;
      contestants_.push_back(
          {name, std::make_unique<Generator>(generator_options(mode), options.type, files, ranks,
                                             plan_.phase(name))});
      contestants_.back().generator->add_memory(plan_);
    }
    arena_ = std::make_unique<Arena>(plan_);
    model_.load(ranks.exec, options.type, *arena_);
    for (const Contestant& c : contestants_)
      c.generator->create(model_.packed(), *arena_, files.rope_table(c.generator->max_positions()));
  }

  void run() {
    for (int pass = 0; pass < options_.passes; ++pass) {
      const OrderedJson line = run_pass(pass);
      if (ranks_.rank() != 0) continue;
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
    }
  }

 private:
  void read_prompts() {
    if (!options_.prompts.empty()) {
      prompts_ = encode_prompt_file(options_.prompts, files_, "auto");
    } else {
      const int count = options_.count * (options_.new_prompts ? options_.passes : 1);
      for (const Prompt& p :
           held_out_prompts({"", options_.task, count}, {}, options_.sampling.seed, files_))
        prompts_.push_back(p.tokens);
    }
  }

  GeneratorOptions generator_options(SpeculationMode mode) const {
    GeneratorOptions r;
    for (const auto& p : prompts_)
      r.max_prompt_tokens = std::max(r.max_prompt_tokens, static_cast<int>(p.size()));
    r.max_new_tokens = options_.max_new_tokens;
    r.max_running = options_.max_running;
    r.kv_memory_mb = options_.kv_memory_mb;
    r.tp = options_.tp;
    r.speculation.mode = mode;
    r.speculation.draft_length = options_.draft_length;
    return r;
  }

  std::vector<Request> requests_of(int pass) const {
    const std::size_t count =
        options_.count > 0 ? static_cast<std::size_t>(options_.count) : prompts_.size();
    const std::size_t first = options_.new_prompts ? static_cast<std::size_t>(pass) * count : 0;
    std::vector<Request> requests;
    for (std::size_t i = 0; i < count; ++i) {
      Request r;
      r.first.prompt = static_cast<std::int64_t>(i);
      r.samples = options_.samples;
      r.prompt = prompts_[(first + i) % prompts_.size()];
      r.max_new_tokens = options_.max_new_tokens;
      requests.push_back(std::move(r));
    }
    return requests;
  }

  OrderedJson run_pass(int pass) {
    const std::vector<Request> requests = requests_of(pass);
    SamplingOptions sampling = options_.sampling;
    sampling.iteration = static_cast<std::uint64_t>(pass);
    OrderedJson line{{"pass", pass}};
    std::map<ResponseId, Completion> first;
    for (std::size_t k = 0; k < contestants_.size(); ++k) {
      const Contestant& c =
          contestants_[(k + static_cast<std::size_t>(pass)) % contestants_.size()];
      barrier(ranks_.world());
      const Timer timer;
      const auto completions =
          c.generator->run(requests, sampling, GeneratorOptions().stops(files_));
      barrier(ranks_.world());
      OrderedJson& entry = line[c.name];
      entry["seconds"] = timer.seconds();
      describe(entry, c.generator->report().speculation);
      for (const Completion& done : completions) {
        const auto [at, is_new] = first.try_emplace(done.id, done);
        if (!is_new &&
            (at->second.response != done.response || at->second.log_probs != done.log_probs))
          TAPER_FAIL(ExitCode::kFailure,
                     "response " << done.id.prompt << " differs with drafts " << c.name);
      }
      std::int64_t tokens = 0;
      for (const Completion& done : completions) tokens += std::ssize(done.response);
      std::vector<std::int64_t> sum{tokens};
      all_reduce_sum(ranks_.world(), sum);
      line["tokens"] = sum[0];
    }
    return line;
  }

  static void describe(OrderedJson& entry, const SpeculationFigures& figures) {
    const DecodeTotals all = figures.total();
    if (all.steps == 0) return;
    entry["tokens_per_step"] = all.tokens_per_step();
    entry["acceptance"] = all.acceptance();
    for (std::size_t i = 0; i < figures.sources.size(); ++i)
      entry["sources"][to_string(static_cast<DraftSource>(i))] = {figures.sources[i].drafted,
                                                                  figures.sources[i].accepted};
    for (std::size_t i = 0; i < figures.batches.size(); ++i) {
      const DecodeTotals& t = figures.batches[i];
      if (t.steps == 0) continue;
      entry["batches"][std::to_string(1 << i)] = {{"steps", t.steps},
                                                  {"sequences", t.sequences},
                                                  {"drafted", t.drafted},
                                                  {"accepted", t.accepted},
                                                  {"seconds", 1e-9 * static_cast<double>(t.ns)}};
    }
  }

  const BenchOptions& options_;
  ModelFiles& files_;
  const Ranks& ranks_;
  std::vector<std::vector<std::int32_t>> prompts_;
  MemoryPlan plan_;
  InferenceModel model_;
  std::unique_ptr<Arena> arena_;
  std::vector<Contestant> contestants_;
};

int run(int argc, char** argv) {
  BenchOptions options;
  options.sampling.seed = 1;
  param::CommandLine line("bench_speculation", "Times generation with and without drafts.");
  line.text("model", options.model, "DIR", "Hugging Face directory").required();
  line.text("prompts", options.prompts, "FILE", "prompts, JSON lines");
  line.text("task", options.task, "NAME", "prompts of an in-tree task instead");
  line.choice("dtype", options.type, "weights",
              {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}});
  line.repeated("mode", options.modes, "MODE", "off, auto or fixed; default: all in turns");
  line.integer("passes", options.passes, "N", "over the prompts").at_least(1);
  line.integer("count", options.count, "N", "prompts of a pass; 0: all of the file").at_least(0);
  line.flag("new-prompts", options.new_prompts, "other prompts in each pass");
  line.integer("samples", options.samples, "N", "responses per prompt").at_least(1);
  line.integer("max-new-tokens", options.max_new_tokens, "N", "limit of lengths").at_least(1);
  line.integer("max-running", options.max_running, "N", "sequences in flight").at_least(1);
  line.integer("tp", options.tp, "N", "tensor-parallel degree").at_least(1);
  line.integer("draft-length", options.draft_length, "N", "tokens of a draft").at_least(1);
  line.number("temperature", options.sampling.temperature, "T", "0: greedy").at_least(0);
  line.integer("seed", options.sampling.seed, "S", "of sampling").at_least(0);
  line.number("kv-memory-mb", options.kv_memory_mb, "MB", "KV cache per rank").above(0);
  if (line.parse_or_print_help(argc, argv)) return 0;
  TAPER_VALIDATE(options.prompts.empty() != options.task.empty(),
                 "either --prompts or --task is needed");
  TAPER_VALIDATE(options.task.empty() || options.count > 0, "--task needs --count");
  Progress progress;
  MpiSession mpi(argc, argv);
  Runtime runtime(argc, argv);
  const Ranks ranks(MPI_COMM_WORLD, mpi.ranks(), {options.tp}, progress);
  ModelFiles files(options.model);
  SpeculationBench(options, files, ranks).run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
