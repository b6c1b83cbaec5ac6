// SPDX-License-Identifier: Apache-2.0
//
// Generates the same responses without drafts, with drafts where they pay and with drafts always,
// in turns within one job, and prints one JSON line per pass over the prompts: seconds of each,
// tokens per sequence and step, right guesses by source, and all of it by the number of sequences
// in a step. Tokens and log-probs of all of them must be equal bit for bit.
//
// With --draft-model, there is a contestant with it for each mode and placement, beside the one
// without; with --early-exits, one with these for each mode.
//
// A pass has random numbers of its own (with --temperature 0 all passes give the same responses);
// each contestant drafts from what it has generated itself in the passes before.
//
// With --choices, on one rank: how often the next token is guessed right from the places of its
// context in the passes before, by several rules, for every token that has such places.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "data/PromptEncoder.hpp"
#include "data/PromptSource.hpp"
#include "device/Runtime.hpp"
#include "engine/Sampler.hpp"
#include "instance/InferenceModel.hpp"
#include "io/Json.hpp"
#include "param/CommandLine.hpp"
#include "rollout/Generator.hpp"
#include "session/Guard.hpp"
#include "session/SharedArena.hpp"
#include "session/Startup.hpp"

using namespace taper;

namespace {

struct BenchOptions {
  std::string model, prompts, task, draft_model, early_exits;
  WeightType type = WeightType::kBf16;
  std::vector<std::string> modes,
      placements;  // of Speculation/Mode and /Draft Placement; empty: all
  int passes = 3, count = 0, samples = 1, max_new_tokens = 256, max_running = 64, tp = 1;
  int draft_length = SpeculationOptions().draft_length;
  bool new_prompts = false, choices = false;
  SamplingOptions sampling;
  double kv_memory_mb = 512;
};

// A way to generate, with its generator.
struct Contestant {
  std::string name;
  std::unique_ptr<Generator> generator;
};

// Rules that guess a token from the places where its context has occurred in earlier passes, in
// responses to the same prompt; each counts how often it is right.
class Choices {
 public:
  void add_pass(const std::map<ResponseId, Completion>& responses, const SamplingOptions& sampling,
                OrderedJson& line) {
    std::array<std::map<std::string, int>, GuessKind::kLevels> levels;
    SuffixIndex now(DraftSource::kPrompt);
    for (const auto& [id, c] : responses) {
      const IndexedText& text = now.text(now.add(token_key(sampling, id, 0), c.prompt));
      std::vector<std::int32_t> context = c.prompt;
      for (const std::int32_t truth : c.response) {
        places_.clear();
        past_.read();
        past_.find(DraftSource::kPrompt, text, IndexedContext(context), places_);
        const int position = static_cast<int>(context.size());
        context.push_back(truth);
        std::erase_if(places_,
                      [](const IndexedPlace& p) { return p.position < p.text->prompt_length; });
        if (places_.empty()) continue;
        const int level = keep_longest();
        std::map<std::string, int>& right = levels[static_cast<std::size_t>(level)];
        ++right["tokens"];
        const CounterRandom random(sampling.seed);
        const std::uint64_t number = text.number(random, position);
        right["newest"] += places_.front().token() == truth;
        right["most_frequent"] += most_frequent() == truth;
        right["cumulated_counts"] += by_counts(number) == truth;
        right["nearest_number"] += nearest(number, random) == truth;
      }
    }
    for (const auto& [id, c] : responses) {
      const int text = past_.add(token_key(sampling, id, 0), c.prompt);
      past_.append(text, c.response);
    }
    for (std::size_t level = 0; level < levels.size(); ++level)
      for (const auto& [rule, count] : levels[level])
        line["choices"][std::to_string(GuessKind::kMatches[level])][rule] = count;
  }

 private:
  // Only the places of the highest level that there is; that level.
  int keep_longest() {
    int longest = 0, level = GuessKind::kLevels - 1;
    for (const IndexedPlace& p : places_) longest = std::max(longest, p.match);
    while (GuessKind::kMatches[level] > longest) --level;
    std::erase_if(places_,
                  [&](const IndexedPlace& p) { return p.match < GuessKind::kMatches[level]; });
    return level;
  }

  std::map<std::int32_t, int> counts() const {
    std::map<std::int32_t, int> counts;
    for (const IndexedPlace& p : places_) ++counts[p.token()];
    return counts;
  }

  std::int32_t most_frequent() const {
    const auto all = counts();
    return std::max_element(all.begin(), all.end(),
                            [](auto& a, auto& b) { return a.second < b.second; })
        ->first;
  }

  // The inverse transform of the number over how often each token was there, in order of ids.
  std::int32_t by_counts(std::uint64_t number) const {
    auto left =
        static_cast<std::int64_t>((static_cast<unsigned __int128>(number) * places_.size()) >> 64);
    const auto all = counts();
    for (const auto& [token, count] : all)
      if ((left -= count) < 0) return token;
    return all.rbegin()->first;
  }

  std::int32_t nearest(std::uint64_t number, const CounterRandom& random) const {
    const auto gap = [&](const IndexedPlace& p) {
      const std::uint64_t other = p.text->number(random, p.position);
      return other > number ? other - number : number - other;
    };
    return std::min_element(places_.begin(), places_.end(),
                            [&](auto& a, auto& b) { return gap(a) < gap(b); })
        ->token();
  }

  SuffixIndex past_{DraftSource::kPrompt};
  std::vector<IndexedPlace> places_;
};

class SpeculationBench {
 public:
  SpeculationBench(const BenchOptions& options, ModelFiles& files, const Ranks& ranks)
      : options_(options), files_(files), ranks_(ranks), model_("model", files, ranks, options.tp) {
    read_prompts();
    model_.add_memory(plan_, options.type);
    for (const auto& [name, mode] : named_speculation_modes()) {
      if (!is_wanted(options.modes, name)) continue;
      SpeculationOptions speculation;
      speculation.mode = mode;
      speculation.draft_length = options.draft_length;
      add(name, speculation);
      if (speculation.is_on() && !options.early_exits.empty()) {
        SpeculationOptions exits = speculation;
        exits.early_exits = options.early_exits;
        add(name + "/exits", exits);
      }
      if (!speculation.is_on() || options.draft_model.empty()) continue;
      speculation.draft_model = options.draft_model;
      for (const auto& [place, placement] : named_draft_placements()) {
        if (!is_wanted(options.placements, place)) continue;
        speculation.draft_placement = placement;
        add(name + "/" + place, speculation);
      }
    }
    arena_ = make_arena(ranks, plan_);
    model_.load(options.type, *arena_);
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
  static bool is_wanted(const std::vector<std::string>& wanted, const std::string& name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  }

  void add(const std::string& name, const SpeculationOptions& speculation) {
    contestants_.push_back(
        {name, std::make_unique<Generator>(generator_options(speculation), options_.type, files_,
                                           ranks_, plan_.phase(name))});
    contestants_.back().generator->add_memory(plan_);
  }

  void read_prompts() {
    const int wanted = options_.count * (options_.new_prompts ? options_.passes : 1);
    if (!options_.prompts.empty()) {
      prompts_ = encode_prompt_file(options_.prompts, files_, "auto");
      TAPER_VALIDATE(wanted <= std::ssize(prompts_),
                     options_.prompts << " has " << prompts_.size() << " prompts, and " << wanted
                                      << " are needed (--count, of each of --passes with "
                                         "--new-prompts)");
    } else {
      for (const Prompt& p :
           held_out_prompts({"", options_.task, wanted}, {}, options_.sampling.seed, files_))
        prompts_.push_back(p.tokens);
    }
  }

  GeneratorOptions generator_options(const SpeculationOptions& speculation) const {
    GeneratorOptions r;
    for (const auto& p : prompts_)
      r.max_prompt_tokens = std::max(r.max_prompt_tokens, static_cast<int>(p.size()));
    r.max_new_tokens = options_.max_new_tokens;
    r.max_running = options_.max_running;
    r.kv_memory_mb = options_.kv_memory_mb;
    r.tp = options_.tp;
    r.speculation = speculation;
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
      r.prompt = prompts_[first + i];
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
            (at->second.response != done.response || at->second.log_probs != done.log_probs ||
             at->second.kept_mass != done.kept_mass || at->second.finish != done.finish))
          TAPER_FAIL(ExitCode::kFailure,
                     "response " << done.id.prompt << " differs with drafts " << c.name);
      }
      if (completions.size() != first.size())
        TAPER_FAIL(ExitCode::kFailure,
                   "responses are missing, or too many, with drafts " << c.name);
      std::int64_t tokens = 0;
      for (const Completion& done : completions) tokens += std::ssize(done.response);
      std::vector<std::int64_t> sum{tokens};
      all_reduce_sum(ranks_.world(), sum);
      line["tokens"] = sum[0];
    }
    if (options_.choices) choices_.add_pass(first, sampling, line);
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
      entry["batches"][std::to_string(1 << i)] = {
          {"steps", t.steps},
          {"sequences", t.sequences},
          {"drafted", t.drafted},
          {"accepted", t.accepted},
          {"seconds", 1e-9 * static_cast<double>(t.ns)},
          {"model_seconds", 1e-9 * static_cast<double>(t.model_ns)}};
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
  Choices choices_;
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
  line.text("draft-model", options.draft_model, "DIR", "drafts, too, in contestants of its own");
  line.text("early-exits", options.early_exits, "DIR", "draft, too, in contestants of their own");
  line.repeated("placement", options.placements, "NAME",
                "sequence, tensor or layer; default: all in turns");
  line.integer("passes", options.passes, "N", "over the prompts").at_least(1);
  line.integer("count", options.count, "N", "prompts of a pass; 0: all of the file").at_least(0);
  line.flag("new-prompts", options.new_prompts, "other prompts in each pass");
  line.flag("choices", options.choices, "counts right guesses by several rules");
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
  TAPER_VALIDATE(!options.new_prompts || options.count > 0, "--new-prompts needs --count");
  Progress progress;
  MpiSession mpi(argc, argv);
  Runtime runtime(argc, argv);
  TAPER_VALIDATE(!options.choices || mpi.ranks() == 1,
                 "--choices counts the responses of one rank: start it on one");
  const Ranks ranks(MPI_COMM_WORLD, mpi.ranks(), {options.tp}, progress);
  ModelFiles files(options.model);
  SpeculationBench(options, files, ranks).run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
