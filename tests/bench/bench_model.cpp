// SPDX-License-Identifier: Apache-2.0
//
// Times generation and training of a model, without prompts or tasks around it, and prints one JSON
// object. Rates are tokens per second over all ranks:
//   decode    one step of equal sequences with contexts of --context (64) to 36 more tokens, head
//             and sampling
//   prefill   one prompt of 512 tokens up to its first sampled token
//   forward   log-probs of 8 x 256 tokens
//   train     forward, backward, AdamW and publishing on 8 x 256 tokens, and each of them
// Ranks form one tensor-parallel group, or one replica each with --tp 1; OMP_NUM_THREADS says
// how many threads a rank has. tests/peers/compare_speed.py sets the figures beside other programs.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "device/Runtime.hpp"
#include "engine/EngineSizing.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/ModelOptions.hpp"
#include "instance/TrainingModel.hpp"
#include "io/Json.hpp"
#include "kernels/copy.hpp"
#include "param/CommandLine.hpp"
#include "rl/MicroBatch.hpp"
#include "session/Guard.hpp"
#include "session/SharedArena.hpp"
#include "session/Startup.hpp"

using namespace taper;

namespace {

constexpr int kPrefill = 512, kTrainRows = 8, kTrainLength = 256;

struct BenchOptions : Numbers {
  std::string model;
  std::vector<std::string> parts = {"decode", "prefill", "forward", "train"};
  std::vector<int> batches = {1, 8, 32, 64};
  int tp = 0;  // 0: all ranks
  int context = 64;
  int tokens = 36;
  int repeats = 5;
  bool checkpointing = false, draws_weights = false, is_eager = false;
  GradientType gradients = GradientType::kFixed;

  bool has(const std::string& part) const {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

// Weights of models that no file has, for measurements: normal values that repeat themselves, so
// that billions of them are there in seconds.
class RepeatingWeights {
 public:
  explicit RepeatingWeights(const ParamTable& table) : table_(table) {
    const CounterRandom random(1);
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = static_cast<float>(0.02 * random.normal({RandomPurpose::kTest, 0, 0, 0, i, 0}));
  }
  void operator()(int piece, std::span<float> weights) const {
    const int index = table_.tensor_of_piece(piece), unit = piece - table_.first_piece(index);
    const ParamTensor& tensor = table_.tensors()[index];
    if (tensor.kind == ShardKind::kReplicated) {  // norms
      std::ranges::fill(weights, 1.0f);
      return;
    }
    std::size_t at = static_cast<std::size_t>(piece) * 7919 % values_.size();
    const auto columns = static_cast<std::size_t>(tensor.columns);
    for (int row = 0; row < tensor.unit_rows; ++row) {
      const bool padding = table_.is_padding(index, unit, row);
      for (float& weight : weights.subspan(static_cast<std::size_t>(row) * columns, columns)) {
        weight = padding ? 0.0f : values_[at];
        at = at + 1 < values_.size() ? at + 1 : 0;
      }
    }
  }

 private:
  const ParamTable& table_;
  std::vector<float> values_ = std::vector<float>((1 << 20) - 1);
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<std::int32_t> random_ids(const ModelFiles& files, int count, int seed) {
  RandomStream random(1, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(seed));
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>(random.below(files.valid_ids())));
  return ids;
}

// Seconds from one meeting of all ranks to the next.
template <class Work>
double together(const Ranks& ranks, Work&& work) {
  barrier(ranks.world());
  const Timer timer;
  work();
  barrier(ranks.world());
  return timer.seconds();
}

// The weights of a model for inference, in memory of their own.
class LoadedModel {
 public:
  LoadedModel(const BenchOptions& options, const ModelFiles& files, const Ranks& ranks)
      : model("model", files, ranks, options.tp) {
    MemoryPlan plan;
    model.add_memory(plan, options.type);
    arena_ = make_arena(ranks, plan);
    if (options.draws_weights)
      model.fill(options.type, *arena_, RepeatingWeights(files.table));
    else
      model.load(options.type, *arena_);
  }

  InferenceModel model;

 private:
  std::unique_ptr<Arena> arena_;
};

// The generation engine with `batch` sequences per replica.
class EngineBench {
 public:
  EngineBench(const BenchOptions& options, ModelFiles& files, const Ranks& ranks,
              const InferenceModel& model, int batch, int prompt)
      : ranks_(ranks), batch_(batch), tokens_(options.tokens), model_(model) {
    EngineOptions engine = engine_options({batch, std::max(512, batch), 8192},
                                          {prompt + tokens_ + 2, files.valid_ids(),
                                           "the KV memory of the benchmark", options.precision()},
                                          files.config, model_.parallel());
    engine.graphs = !options.is_eager;
    const EngineMemory memory = EngineMemory::of(files.table, model_.parallel(), engine);
    MemoryPlan plan;
    memory.add_memory(plan, plan.phase("generation"));
    arena_ = make_arena(ranks, plan);
    engine_ = std::make_unique<Engine>(
        ranks.exec, EngineSetup{&model_.view(), &model_.parallel(), engine}, memory, *arena_,
        plan.phase("generation"), files.rope_table(engine.max_positions));
    for (int i = 0; i < batch; ++i) prompts_.push_back(random_ids(files, prompt, i));
  }

  // Tokens per second of the steps, tokens_ at most, in which all sequences decode.
  std::vector<double> decode() {
    start(tokens_ + 1);
    while (engine_->step().prefill_rows > 0) continue;
    std::vector<double> rates;
    while (!engine_->idle()) {
      int rows = 0;
      const double seconds = together(ranks_, [&] { rows = engine_->step().decode_rows; });
      if (rows == batch_) rates.push_back(batch_ * replicas() / seconds);
    }
    engine_->take_completions();
    TAPER_VALIDATE(!rates.empty(),
                   "of --batches "
                       << batch_
                       << " sequences, the first have ended before the last "
                          "ones have read their prompts; choose fewer, or a smaller --context");
    return rates;
  }

  double prefill() {
    start(1);
    const double seconds = together(ranks_, [&] {
      while (!engine_->idle()) engine_->step();
    });
    engine_->take_completions();
    return batch_ * replicas() * static_cast<double>(prompts_.front().size()) / seconds;
  }

 private:
  int replicas() const { return ranks_.size() / model_.parallel().group().size(); }

  void start(int new_tokens) {
    SamplingOptions sampling;
    sampling.seed = 1;
    engine_->begin(sampling, {});
    for (int i = 0; i < batch_; ++i) engine_->submit({{i, 0}, 1, prompts_[i], new_tokens});
  }

  const Ranks& ranks_;
  int batch_, tokens_;
  const InferenceModel& model_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::vector<std::int32_t>> prompts_;
};

// Training on the same sequences over and over; data-parallel ranks share them.
class TrainBench {
 public:
  TrainBench(const BenchOptions& options, ModelFiles& files, const Ranks& ranks)
      : files_(files), ranks_(ranks), model_(files, ranks, model_options(options)) {
    MemoryPlan plan;
    model_.add_memory(plan);
    arena_ = make_arena(ranks, plan);
    model_.create(*arena_, files.rope_table(kTrainLength));
    if (options.draws_weights)
      model_.set_masters(RepeatingWeights(files.table));
    else
      model_.load_masters();
    const Group& dp = model_.dp_group();
    for (int i = dp.rank(); i < kTrainRows; i += dp.size()) {
      const auto ids = random_ids(files, kTrainLength + 1, i);
      packed_.add({ids.data(), 1}, {ids.data() + 1, ids.size() - 1});
    }
    log_probs_.resize(packed_.rows.size());
  }

  double forward() {
    return rate([&] { log_probs(); });
  }

  // Of the whole step and of its parts.
  std::map<std::string, double> train() {
    std::map<std::string, double> rates;
    const auto part = [&](const std::string& name, auto&& work) {
      rates["train, " + name] = rate(work);
    };
    rates["train"] = rate([&] {
      part("forward", [&] {
        model_.gradients().clear(ranks_.exec);
        model_.pass().forward(ranks_.exec, model_.train_view(), model_.train_parallel(),
                              packed_.sequences);
      });
      part("backward", [&] {
        constexpr TokenSlope kSlope{-1.0f / (kTrainRows * kTrainLength), 0.0f};
        model_.pass().backward(
            ranks_.exec, model_.train_view(), model_.train_parallel(), packed_.rows,
            packed_.targets, head(), [&](std::size_t, float, float) { return kSlope; },
            model_.gradients());
      });
      part("optimizer", [&] { model_.optimizer().step(ranks_.exec, model_.gradients(), 1e-6); });
      part("publishing", [&] { model_.publish(); });
    });
    return rates;
  }

 private:
  static TrainingModelOptions model_options(const BenchOptions& options) {
    TrainingModelOptions o;
    o.type = options.type;
    o.train_tp = o.generation_tp = options.tp;
    o.pass.max_rows = kTrainRows * kTrainLength;
    o.pass.precision = options.precision();
    o.pass.gradients = options.gradients;
    o.pass.checkpointing = options.checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
    return o;
  }

  HeadOptions head() const { return {files_.valid_ids(), 1.0f}; }

  void log_probs() {
    model_.pass().forward(ranks_.exec, model_.train_view(), model_.train_parallel(),
                          packed_.sequences);
    model_.pass().log_probs(ranks_.exec, model_.train_view(), model_.train_parallel(), packed_.rows,
                            packed_.targets, head(), log_probs_, {});
  }

  template <class Work>
  double rate(Work&& work) {
    return kTrainRows * kTrainLength / together(ranks_, [&] {
             work();
             ranks_.exec.fence();
           });
  }

  ModelFiles& files_;
  const Ranks& ranks_;
  TrainingModel model_;
  std::unique_ptr<Arena> arena_;
  PackedSamples packed_;
  std::vector<float> log_probs_;
};

std::map<std::string, std::vector<double>> measure(const BenchOptions& options, ModelFiles& files,
                                                   const Ranks& ranks) {
  std::map<std::string, std::vector<double>> rates;
  const auto repeat = [&](const std::string& name, auto&& work) {
    work();  // warm-up
    for (int i = 0; i < options.repeats; ++i) rates[name].push_back(work());
  };
  std::optional<LoadedModel> loaded;
  if (options.has("decode") || options.has("prefill")) loaded.emplace(options, files, ranks);
  if (options.has("decode")) {
    for (const int batch : options.batches) {
      EngineBench bench(options, files, ranks, loaded->model, batch, options.context);
      bench.decode();
      for (int i = 0; i < options.repeats; ++i)
        for (const double rate : bench.decode())
          rates["decode " + std::to_string(batch)].push_back(rate);
    }
  }
  if (options.has("prefill")) {
    EngineBench bench(options, files, ranks, loaded->model, 1, kPrefill);
    repeat("prefill", [&] { return bench.prefill(); });
  }
  loaded.reset();
  if (options.has("forward") || options.has("train")) {
    TrainBench bench(options, files, ranks);
    if (options.has("forward")) repeat("forward", [&] { return bench.forward(); });
    if (options.has("train")) {
      bench.train();
      for (int i = 0; i < options.repeats; ++i)
        for (const auto& [name, rate] : bench.train()) rates[name].push_back(rate);
    }
  }
  return rates;
}

void print(const BenchOptions& options, const Ranks& ranks,
           const std::map<std::string, std::vector<double>>& rates) {
  std::printf(
      "{\"model\": %s, \"dtype\": \"%s\", \"arithmetic\": \"%s\", \"ranks\": %d, \"tp\": %d, "
      "\"threads\": %d",
      Json(options.model).dump().c_str(), options.type == WeightType::kBf16 ? "bf16" : "f32",
      to_string(options.arithmetic).c_str(), ranks.size(), options.tp, HostExec().concurrency());
  for (const auto& [name, values] : rates) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::printf(",\n \"%s\": {\"median\": %.2f, \"min\": %.2f, \"max\": %.2f}", name.c_str(),
                median(values), *low, *high);
  }
  std::printf("}\n");
}

int run(int argc, char** argv) {
  BenchOptions options;
  options.arithmetic = Arithmetic::kF32;
  param::CommandLine line("bench_model", "Times generation and training of a model.");
  line.text("model", options.model, "DIR", "Hugging Face directory").required();
  line.choice("dtype", options.type, "weights of the forward pass",
              {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}});
  line.list("parts", options.parts, "NAMES", "decode, prefill, forward, train");
  line.list("batches", options.batches, "N,N", "sequences per replica of decode");
  line.integer("context", options.context, "N", "tokens before the first that is timed in decode")
      .at_least(1);
  line.integer("tokens", options.tokens, "N", "tokens of each sequence that are timed in decode")
      .at_least(1);
  line.integer("tp", options.tp, "N", "ranks per replica (0: all)");
  line.integer("repeats", options.repeats, "N", "runs of each part").at_least(1);
  line.choice("arithmetic", options.arithmetic, "of products", named_arithmetics());
  line.choice("cache-type", options.cache, "of keys and values", named_cache_types());
  line.choice("gradients", options.gradients,
              "sums of gradients: fixed, as Training/Exactness: layout has them, or plain",
              {{"fixed", GradientType::kFixed}, {"plain", GradientType::kF32}});
  line.flag("draw-weights", options.draws_weights,
            "draw weights, of --model only config.json is read");
  line.flag("eager", options.is_eager, "launch each kernel of a step by itself, on GPUs");
  line.flag("checkpointing", options.checkpointing, "recompute activations in the backward pass");
  if (line.parse_or_print_help(argc, argv)) return 0;
  require_no_problems(options.problems("--arithmetic", "--cache-type"), "the arguments");
  Progress progress;
  MpiSession mpi(argc, argv);
  Runtime runtime(argc, argv);
  if (options.tp == 0) options.tp = mpi.ranks();
  Ranks ranks(MPI_COMM_WORLD, mpi.ranks(), {options.tp}, progress);
  set_precision(ranks.exec, options.precision());
#if defined(TAPER_CUDA)
  ranks.connect_devices();
#endif
  ModelFiles files(options.model);
  const auto rates = measure(options, files, ranks);
  if (ranks.rank() == 0) print(options, ranks, rates);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
