// SPDX-License-Identifier: Apache-2.0
//
// Generates the same responses again and again under each static layout and under the adaptive
// planner, in turns within one job, and prints one JSON line per generation: seconds of each, what
// replay says of the same lengths, the layout changes with their cost by part. Tokens and log-probs
// of all of them must be equal bit for bit. tests/bench/layouts_table.py makes the tables.
//
// With --speculation, there is a contestant with drafts beside each of these; each drafts from what
// it has generated itself.
//
// Lengths are those of a described law (responses end when the law says so), or, with --prompts or
// --task and without --law, those that the model chooses.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "data/PromptEncoder.hpp"
#include "data/PromptSource.hpp"
#include "device/Runtime.hpp"
#include "instance/InferenceModel.hpp"
#include "io/Json.hpp"
#include "param/CommandLine.hpp"
#include "profile/ProfileFile.hpp"
#include "rl/SampleSet.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/GenerationRecord.hpp"
#include "rollout/Generator.hpp"
#include "session/Guard.hpp"
#include "session/SharedArena.hpp"
#include "session/Startup.hpp"
#include "simulate/LengthLaw.hpp"
#include "simulate/Oracle.hpp"

using namespace taper;

namespace {

struct BenchOptions {
  std::string model, profile, prompts, task;
  WeightType type = WeightType::kBf16;
  LengthLaw law = LengthLaw::kHeavyTail;
  bool is_pinned = true;  // lengths by the law
  SpeculationOptions speculation;
  SamplingOptions sampling;
  int generations = 10, sequences = 64, samples = 1, prompt_tokens = 32, max_new_tokens = 512;
  int max_running = 64;
  double kv_memory_mb = 4096;
  ConsultationOptions consultation;
};

// The requests of one generation, on all ranks alike.
class Requests {
 public:
  Requests(const BenchOptions& options, const ModelFiles& files)
      : options_(options), files_(files) {
    if (!options.prompts.empty()) prompts_ = encode_prompt_file(options.prompts, files, "auto");
    if (options.task.empty()) return;
    const int count = options.generations * options.sequences / options.samples;
    for (const Prompt& p :
         held_out_prompts({"", options.task, count}, {}, options.sampling.seed, files))
      prompts_.push_back(p.tokens);
  }

  int longest_prompt() const {
    std::size_t longest = prompts_.empty() ? static_cast<std::size_t>(options_.prompt_tokens) : 1;
    for (const auto& p : prompts_) longest = std::max(longest, p.size());
    return static_cast<int>(longest);
  }

  std::vector<Request> of(int generation) const {
    const int count = options_.sequences / options_.samples;
    std::vector<int> lengths;
    if (options_.is_pinned)
      lengths = draw_lengths(options_.law, options_.sampling.seed, generation, options_.sequences,
                             options_.max_new_tokens);
    std::vector<Request> list;
    for (int i = 0; i < count; ++i) {
      Request r;
      r.first.prompt = i;
      r.samples = options_.samples;
      r.max_new_tokens = options_.max_new_tokens;
      const int number = generation * count + i;
      r.prompt = prompts_.empty() ? random_prompt(number)
                                  : prompts_[static_cast<std::size_t>(number) % prompts_.size()];
      if (options_.is_pinned)
        r.pinned.assign(lengths.begin() + i * r.samples, lengths.begin() + (i + 1) * r.samples);
      list.push_back(std::move(r));
    }
    return list;
  }

 private:
  std::vector<std::int32_t> random_prompt(int number) const {
    RandomStream random(options_.sampling.seed, RandomPurpose::kTest, 0,
                        static_cast<std::uint64_t>(number));
    std::vector<std::int32_t> ids;
    for (int i = 0; i < options_.prompt_tokens; ++i)
      ids.push_back(static_cast<std::int32_t>(random.below(files_.valid_ids())));
    return ids;
  }

  const BenchOptions& options_;
  const ModelFiles& files_;
  std::vector<std::vector<std::int32_t>> prompts_;
};

// A planner, with drafts or without, by the name under which its times are listed.
struct Contestant {
  std::string name;
  Generator* generator = nullptr;
  std::shared_ptr<LayoutPlanner> planner;
  bool is_adaptive = false, has_drafts = false;
};

class LayoutBench {
 public:
  LayoutBench(const BenchOptions& options, ModelFiles& files, const Ranks& ranks)
      : options_(options),
        files_(files),
        ranks_(ranks),
        requests_(options, files),
        machine_(read_profile(options.profile)),
        degrees_(machine_.profile.degrees()) {
    Generator& plain = add_generator("generation", {});
    add_contestants(false, [&](const std::string&) { return &plain; });
    // Each drafts from what it has generated itself.
    if (options.speculation.is_on())
      add_contestants(
          true, [&](const std::string& name) { return &add_generator(name, options.speculation); });
    model_.emplace("model", files, ranks, plain.smallest_degree());
    model_->add_memory(plan_, options.type);
    arena_ = make_arena(ranks, plan_);
    model_->load(options.type, *arena_);
    for (const auto& generator : generators_)
      generator->create(model_->packed(), *arena_, files.rope_table(generator->max_positions()));
  }

  void run() {
    warm_up();
    for (int i = 0; i < options_.generations; ++i) print(generation(i));
  }

 private:
  Generator& add_generator(const std::string& name, const SpeculationOptions& speculation) {
    GeneratorOptions r;
    r.speculation = speculation;
    r.max_prompt_tokens = requests_.longest_prompt();
    r.max_new_tokens = options_.max_new_tokens;
    r.max_running = options_.max_running;
    r.step_rows = std::max(256, options_.sequences);
    r.kv_memory_mb = options_.kv_memory_mb;
    r.mode = PlannerMode::kAdaptive;
    r.profile = options_.profile;
    generators_.push_back(
        std::make_unique<Generator>(r, options_.type, files_, ranks_, plan_.phase(name)));
    generators_.back()->add_memory(plan_);
    return *generators_.back();
  }

  // Every static layout, and the planner; generator_of(name) is what they generate with.
  template <class GeneratorOf>
  void add_contestants(bool has_drafts, const GeneratorOf& generator_of) {
    const std::string suffix = has_drafts ? "/drafts" : "";
    for (const int tp : degrees_) {
      const Layout layout = Layout::uniform(tp, ranks_.chain);
      const std::string name = to_string(layout) + suffix;
      contestants_.push_back(
          {name, generator_of(name), std::make_shared<StaticPlanner>(layout), false, has_drafts});
    }
    const std::string name = "adaptive" + suffix;
    Generator* generator = generator_of(name);
    contestants_.push_back({name, generator, generator->planner(), true, has_drafts});
  }

  void warm_up() {
    std::vector<Request> requests = requests_.of(0);
    for (Request& r : requests) {
      r.max_new_tokens = std::min(r.max_new_tokens, 8);
      r.pinned.clear();
    }
    for (const Contestant& c : contestants_) {
      if (c.is_adaptive && !c.has_drafts) continue;  // its generator is that of static layouts
      c.generator->set_planner(c.is_adaptive ? contestants_.front().planner : c.planner,
                               options_.consultation);
      c.generator->run(requests, {}, {});
    }
  }

  // One generation by every contestant, another one first each time.
  OrderedJson generation(int number) {
    const std::vector<Request> requests = requests_.of(number);
    const bool pinned = !requests.front().pinned.empty();
    const StopOptions stops = pinned ? StopOptions() : GeneratorOptions().stops(files_);
    SamplingOptions sampling = options_.sampling;
    sampling.iteration = static_cast<std::uint64_t>(number);
    std::map<std::string, double> seconds;
    std::vector<Sample> first;
    OrderedJson line{{"generation", number}};
    for (std::size_t k = 0; k < contestants_.size(); ++k) {
      const Contestant& c =
          contestants_[(k + static_cast<std::size_t>(number)) % contestants_.size()];
      c.generator->set_planner(c.planner, options_.consultation);
      barrier(ranks_.world());
      const Timer timer;
      auto completions = c.generator->run(requests, sampling, stops);
      barrier(ranks_.world());
      seconds[c.name] = timer.seconds();
      SampleSet set(ranks_.world(), as_samples(std::move(completions)));
      if (c.has_drafts) {
        const DecodeTotals decoded = c.generator->report().speculation.total();
        line["drafts"][c.name] = {{"tokens_per_step", decoded.tokens_per_step()},
                                  {"acceptance", decoded.acceptance()},
                                  {"switches", OrderedJson::array()}};
        for (const SwitchRecord& change : c.generator->report().switches)
          line["drafts"][c.name]["switches"].push_back({{"at_s", change.at_s},
                                                        {"layout", to_string(change.plan.layout)},
                                                        {"done", change.report.done}});
      }
      if (c.is_adaptive) {
        const std::vector<Outcome> outcomes = outcomes_of(set.all());
        if (!c.has_drafts) describe(line, outcomes, number);
        c.generator->learn(outcomes);
      }
      std::vector<int> rank_of;
      for (int row = 0; row < set.size(); ++row) rank_of.push_back(row % ranks_.size());
      set.move_to({1, ranks_.size()}, rank_of);
      std::vector<Sample> samples = std::move(set.here());
      if (first.empty())
        first = std::move(samples);
      else
        require_same(first, samples, c.name);
    }
    for (const auto& [name, s] : seconds) line["seconds"][name] = s;
    return line;
  }

  static void require_same(const std::vector<Sample>& a, const std::vector<Sample>& b,
                           const std::string& name) {
    TAPER_INSIST(a.size() == b.size(), "another number of responses under " << name);
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i].response != b[i].response || a[i].log_probs != b[i].log_probs)
        TAPER_FAIL(ExitCode::kFailure, "response " << i << " differs under " << name);
  }

  // The account of an adaptive generation beside what replay says of its lengths.
  void describe(OrderedJson& line, const std::vector<Outcome>& outcomes, int number) const {
    const Generator& generator = *generators_.front();
    const GenerationReport& report = generator.report();
    ReplayTrace trace;
    trace.outcomes = outcomes;
    trace.work.iteration = number;
    trace.work.sequences = options_.sequences;
    trace.work.samples = options_.samples;
    trace.work.max_new_tokens = options_.max_new_tokens;
    trace.work.slots_per_rank = options_.max_running;
    std::vector<int> lengths;
    for (const Outcome& o : trace.outcomes) {
      trace.work.prompt_tokens += o.prompt;
      lengths.push_back(o.response);
    }
    line["lengths"] = lengths;
    OrderedJson replayed;
    for (const int tp : degrees_) {
      const Layout layout = Layout::uniform(tp, ranks_.chain);
      replayed[to_string(layout)] =
          1e-9 * static_cast<double>(replay_ns(trace, layout, {}, machine_));
    }
    for (const int tp : degrees_) {  // what the planner has learned of step times
      const LayoutGroup group{0, tp};
      const auto profiled = machine_.steps.curve(group).step_ns(8, 8, 8 * 64);
      line["step_factor"][std::to_string(tp)] =
          static_cast<double>(generator.planner()->step_ns(group, {8, 8, 0, 8 * 64})) /
          static_cast<double>(profiled);
    }
    std::vector<ReplaySwitch> made;
    line["first_layout"] = to_string(report.first_layout);
    line["switches"] = OrderedJson::array();
    for (const SwitchRecord& s : report.switches) {
      line["switches"].push_back(
          {{"at_s", s.at_s},
           {"layout", to_string(s.plan.layout)},
           {"done", s.report.done},
           {"sequences", s.sequences},
           {"predicted_s", 1e-9 * static_cast<double>(s.confirmation.cost.total())},
           {"seconds", s.seconds},
           {"meeting_s", s.meeting_s},
           {"kv_s", s.report.kv_s},
           {"lists_s", s.report.lists_s},
           {"rebind_s", s.report.rebind_s},
           {"kv_bytes", s.report.bytes_planned}});
      if (s.report.done)
        made.push_back({static_cast<std::int64_t>(1e9 * s.at_s), s.plan.layout, s.plan.repack});
    }
    replayed["adaptive"] =
        1e-9 * static_cast<double>(replay_ns(trace, report.first_layout, made, machine_));
    const OracleResult oracle =
        best_plan(trace, degrees_, ranks_.chain, machine_, options_.consultation.period_ns);
    replayed["oracle"] = 1e-9 * static_cast<double>(oracle.time_ns);
    line["replayed"] = replayed;
    std::map<std::string, int> reasons;
    for (const ConsultationRecord& c : report.decisions) ++reasons[c.decision.reason];
    line["reasons"] = reasons;
    line["consultations"] = report.consultations;
    line["consultation_s"] = report.consultation_s;
  }

  void print(const OrderedJson& line) const {
    if (ranks_.rank() != 0) return;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  const BenchOptions& options_;
  ModelFiles& files_;
  const Ranks& ranks_;
  Requests requests_;
  MemoryPlan plan_;
  SimulatedMachine machine_;
  std::vector<int> degrees_;
  std::vector<std::unique_ptr<Generator>> generators_;
  std::vector<Contestant> contestants_;
  std::optional<InferenceModel> model_;
  std::unique_ptr<Arena> arena_;
};

int run(int argc, char** argv) {
  BenchOptions options;
  options.sampling.seed = 1;
  double period_ms = 1e-6 * static_cast<double>(options.consultation.period_ns);
  param::CommandLine line("bench_layouts", "Times static and adaptive layouts side by side.");
  line.text("model", options.model, "DIR", "Hugging Face directory").required();
  line.text("profile", options.profile, "FILE", "latency profile of it here").required();
  line.text("prompts", options.prompts, "FILE", "prompts, JSON lines; else they are random tokens");
  line.text("task", options.task, "NAME", "prompts of an in-tree task instead");
  line.choice("dtype", options.type, "weights",
              {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}});
  line.choice("law", options.law,
              "response lengths; with prompts, responses end by themselves if it is not given",
              named_length_laws());
  line.choice("speculation", options.speculation.mode, "of further contestants",
              named_speculation_modes());
  line.number("temperature", options.sampling.temperature, "T", "0: greedy").at_least(0);
  line.integer("generations", options.generations, "N", "of each contestant").at_least(1);
  line.integer("sequences", options.sequences, "N", "responses per generation").at_least(1);
  line.integer("samples", options.samples, "N", "responses per prompt").at_least(1);
  line.integer("prompt-tokens", options.prompt_tokens, "N", "length of prompts").at_least(1);
  line.integer("max-new-tokens", options.max_new_tokens, "N", "limit of lengths").at_least(1);
  line.integer("max-running", options.max_running, "N", "sequences in flight per rank").at_least(1);
  line.number("kv-memory-mb", options.kv_memory_mb, "MB", "KV cache per rank").above(0);
  line.integer("seed", options.sampling.seed, "S", "of lengths and sampling").at_least(0);
  line.number("period-ms", period_ms, "MS", "between consultations, at least").above(0);
  if (line.parse_or_print_help(argc, argv)) return 0;
  TAPER_VALIDATE(options.sequences % options.samples == 0,
                 "--sequences must be a multiple of --samples");
  TAPER_VALIDATE(options.prompts.empty() || options.task.empty(),
                 "--prompts and --task exclude each other");
  options.is_pinned = line.given("law") || (options.prompts.empty() && options.task.empty());
  options.consultation.period_ns = static_cast<std::int64_t>(1e6 * period_ms);
  Progress progress;
  MpiSession mpi(argc, argv);
  Runtime runtime(argc, argv);
  const Ranks ranks(MPI_COMM_WORLD, mpi.ranks(), read_profile(options.profile).degrees(), progress);
  ModelFiles files(options.model);
  LayoutBench(options, files, ranks).run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
