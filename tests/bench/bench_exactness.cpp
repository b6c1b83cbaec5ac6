// SPDX-License-Identifier: Apache-2.0
//
// What training costs of which no bit depends on the layout (Training/Exactness: layout): a step of
// it, forward, backward, AdamW and publishing, in turns with a step of plain f32 sums, so that each
// ratio is of two times that follow one another. Prints a table with the median and the quartiles.
// With --group and --prompt also what prompts save that their samples share (Training/Shared
// Prompts), beside the same step without.
//
// How accurate the sums are: the gradient of a matrix of weights over 16,384 random tokens by both
// ways, against sums in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "device/Runtime.hpp"
#include "instance/TrainingModel.hpp"
#include "kernels/Staging.hpp"
#include "kernels/product.hpp"
#include "param/CommandLine.hpp"
#include "rl/MicroBatch.hpp"
#include "session/Guard.hpp"
#include "session/SharedArena.hpp"
#include "session/Startup.hpp"

using namespace taper;

namespace {

struct BenchOptions {
  std::string model;
  int tp = 1;
  int samples = 64, length = 64;
  int group = 1, prompt = 1;
  int max_tokens = 2048;
  std::vector<int> bundles = {256, 512, 1024, 2048};
  int repeats = 5;
};

// A model that is trained on the same samples over and over.
class Trained {
 public:
  Trained(const BenchOptions& options, ModelFiles& files, const Ranks& ranks,
          GradientType gradients, bool shares_prompts = false)
      : options_(options),
        ranks_(ranks),
        pass_(model_options(options, gradients, shares_prompts).pass),
        model_(files, ranks, model_options(options, gradients, shares_prompts)),
        head_{files.valid_ids(), 1.0f} {
    MemoryPlan plan;
    model_.add_memory(plan);
    bytes_ = plan.total();
    arena_ = make_arena(ranks, plan);
    model_.create(*arena_, files.rope_table(options.length));
    model_.load_masters();
    RandomStream random(1, RandomPurpose::kTest, 0, 0);
    for (int s = 0; s < options.samples; ++s) {
      std::vector<std::int32_t> ids;
      if (s % options.group > 0)
        ids.assign(samples_.back().begin(), samples_.back().begin() + options.prompt);
      for (int i = static_cast<int>(ids.size()); i <= options.length; ++i)
        ids.push_back(static_cast<std::int32_t>(random.below(files.valid_ids())));
      samples_.push_back(std::move(ids));
    }
  }

  // Seconds of a step in micro-batches of bundles, or as large as there is room (0).
  double step(int bundle_tokens) {
    TrainPassOptions pass = pass_;
    pass.bundle_tokens = bundle_tokens;
    const Group& dp = model_.dp_group();
    SequenceSizes sizes;
    for (int s = 0; s < options_.samples; ++s)
      sizes.add(options_.length,
                pass.shares_prefixes && s % options_.group > 0 ? options_.prompt - 1 : 0);
    const auto batches = micro_batches_of(sizes, dp.size(), dp.rank(), pass);
    const auto prompt = static_cast<std::size_t>(options_.prompt);
    const TokenSlope slope{
        -1.0f / static_cast<float>(options_.samples * (options_.length + 1 - options_.prompt)),
        0.0f};
    barrier(ranks_.world());
    const Timer timer;
    model_.gradients().clear(ranks_.exec);
    for (const auto& batch : batches) {
      PackedSamples packed;
      packed.shares_prompts = pass.shares_prefixes;
      for (const int i : batch) {
        const std::span<const std::int32_t> ids = samples_[i];
        packed.add(ids.first(prompt), ids.subspan(prompt));
      }
      model_.pass().forward(ranks_.exec, model_.train_view(), model_.train_parallel(),
                            packed.sequences);
      model_.pass().backward(
          ranks_.exec, model_.train_view(), model_.train_parallel(), packed.rows, packed.targets,
          head_, [&](std::size_t, float, float) { return slope; }, model_.gradients());
    }
    model_.optimizer().step(ranks_.exec, model_.gradients(), 1e-6);
    model_.publish();
    ranks_.exec.fence();
    barrier(ranks_.world());
    return timer.seconds();
  }

  // Of the memory plan.
  std::int64_t bytes() const { return bytes_; }

 private:
  static TrainingModelOptions model_options(const BenchOptions& options, GradientType gradients,
                                            bool shares_prompts) {
    TrainingModelOptions o;
    o.train_tp = o.generation_tp = options.tp;
    o.pass.max_rows = options.max_tokens;
    o.pass.gradients = gradients;
    o.pass.shares_prefixes = shares_prompts;
    return o;
  }

  const BenchOptions& options_;
  const Ranks& ranks_;
  TrainPassOptions pass_;
  TrainingModel model_;
  HeadOptions head_;
  std::int64_t bytes_ = 0;
  std::unique_ptr<Arena> arena_;
  std::vector<std::vector<std::int32_t>> samples_;
};

// Root mean square and largest error of sums of outer products, relative to the root mean square
// and the largest of the sums.
struct Errors {
  double mean = 0.0, worst = 0.0;
};

constexpr int kTokens = 16384, kSide = 64;

class Accuracy {
 public:
  Accuracy() : left_(kTokens * kSide), right_(left_.size()), exact_(kSide * kSide, 0.0) {
    const CounterRandom random(2);
    std::uint64_t drawn = 0;
    const auto normal = [&] { return random.normal({RandomPurpose::kTest, 0, 0, 0, drawn++, 0}); };
    // As activations and their gradients are: these of very different sizes from token to token.
    for (int t = 0; t < kTokens; ++t) {
      const double scale = 1e-5 * std::exp(2.0 * normal());
      for (int i = 0; i < kSide; ++i) {
        left_[t * kSide + i] = static_cast<float>(normal());
        right_[t * kSide + i] = static_cast<float>(scale * normal());
      }
    }
    for (int t = 0; t < kTokens; ++t)
      for (int i = 0; i < kSide; ++i)
        for (int j = 0; j < kSide; ++j)
          exact_[i * kSide + j] += double{left_[t * kSide + i]} * right_[t * kSide + j];
  }

  // By calls of so many tokens each.
  Errors of(GradientType type, int tokens) const {
    Staged<Fixed> fixed(exact_.size());
    Staged<float> sums(exact_.size());
    GradientView gradient = MatrixView<float, Exec>(sums.data(), kSide, kSide);
    if (type == GradientType::kFixed) gradient = {fixed.data(), type, kSide, kSide};
    for (int t = 0; t < kTokens; t += tokens)
      accumulate_outer(Exec(), gradient, part(left_, t, tokens), part(right_, t, tokens));
    Exec().fence();
    if (type == GradientType::kFixed)
      std::transform(fixed.begin(), fixed.end(), sums.begin(), [](Fixed f) { return to_float(f); });
    Errors errors;
    double squares = 0.0, largest = 0.0;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      const double error = sums[i] - exact_[i];
      errors.mean += error * error;
      errors.worst = std::max(errors.worst, std::abs(error));
      squares += exact_[i] * exact_[i];
      largest = std::max(largest, std::abs(exact_[i]));
    }
    return {std::sqrt(errors.mean / squares), errors.worst / largest};
  }

 private:
  static ConstFloatMatrix part(const Staged<float>& all, int begin, int tokens) {
    return ConstFloatMatrix(all.data() + std::size_t(begin) * kSide, tokens, kSide);
  }

  Staged<float> left_, right_;
  std::vector<double> exact_;
};

void print_accuracy() {
  const Accuracy accuracy;
  std::printf("errors of sums over %d tokens: root mean square, largest\n", kTokens);
  const auto print = [&](const std::string& name, GradientType type, int tokens) {
    const Errors e = accuracy.of(type, tokens);
    std::printf("%-22s %.2g, %.2g\n", name.c_str(), e.mean, e.worst);
  };
  print("plain", GradientType::kF32, 2048);
  for (const int tokens : {256, 1024, 2048, 16384})
    print("bundles of " + std::to_string(tokens), GradientType::kFixed, tokens);
}

// The value below which the share q of them lies.
double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

int run(int argc, char** argv) {
  BenchOptions options;
  param::CommandLine line("bench_exactness",
                          "Times training that is exact beside one that is not.");
  line.text("model", options.model, "DIR", "Hugging Face directory").required();
  line.integer("tp", options.tp, "N", "ranks per replica").at_least(1);
  line.integer("samples", options.samples, "N", "sequences of a step").at_least(1);
  line.integer("length", options.length, "N", "tokens of each").at_least(1);
  line.integer("group", options.group, "N", "sequences of a prompt").at_least(1);
  line.integer("prompt", options.prompt, "N", "tokens that the sequences of a prompt share")
      .at_least(1);
  line.integer("max-tokens", options.max_tokens, "N", "of a micro-batch").at_least(1);
  line.list("bundles", options.bundles, "N,N", "tokens of bundles");
  line.integer("repeats", options.repeats, "N", "rounds, of which each has a step of every kind")
      .at_least(1);
  if (line.parse_or_print_help(argc, argv)) return 0;
  Progress progress;
  MpiSession mpi(argc, argv);
  Runtime runtime(argc, argv);
  Ranks ranks(MPI_COMM_WORLD, mpi.ranks(), {options.tp}, progress);
  ModelFiles files(options.model);
  TAPER_VALIDATE(options.prompt <= options.length, "--prompt is above --length");
  const bool has_groups = options.group > 1 && options.prompt > 1;
  Trained plain(options, files, ranks, GradientType::kF32),
      exact(options, files, ranks, GradientType::kFixed);
  std::optional<Trained> shared;
  if (has_groups) shared.emplace(options, files, ranks, GradientType::kFixed, true);
  std::vector<double> times;
  std::vector<std::vector<double>> ratios(options.bundles.size()), shared_ratios(ratios);
  for (int round = -1; round < options.repeats; ++round)  // the first one is to get warm
    for (std::size_t b = 0; b < options.bundles.size(); ++b) {
      const int bundle = options.bundles[b];
      const double before = plain.step(0), one = exact.step(bundle), after = plain.step(0);
      if (round >= 0) times.push_back(before);
      if (round >= 0) ratios[b].push_back(2 * one / (before + after));
      if (!has_groups) continue;
      const double first = exact.step(bundle), with = shared->step(bundle),
                   second = exact.step(bundle);
      if (round >= 0) shared_ratios[b].push_back(2 * with / (first + second));
    }
  if (ranks.rank() > 0) return 0;
  print_accuracy();
  std::printf("%d sequences of %d tokens, %d ranks, TP %d; plain sums: %.3f s a step\n",
              options.samples, options.length, ranks.size(), options.tp, quantile(times, 0.5));
  const auto print_memory = [](const char* name, const Trained& trained) {
    std::printf("memory of a rank, %s: %.1f MiB\n", name,
                static_cast<double>(trained.bytes()) / (1 << 20));
  };
  print_memory("plain sums", plain);
  print_memory("fixed-point sums", exact);
  if (has_groups) print_memory("fixed-point sums and shared prompts", *shared);
  std::printf("bundle tokens   time, relative (median, quartiles)\n");
  const auto print = [](const std::vector<double>& list) {
    std::printf("   %.3f (%.3f to %.3f)", quantile(list, 0.5), quantile(list, 0.25),
                quantile(list, 0.75));
  };
  for (std::size_t b = 0; b < options.bundles.size(); ++b) {
    std::printf("%13d", options.bundles[b]);
    print(ratios[b]);
    if (has_groups) print(shared_ratios[b]);
    std::printf(has_groups && b == 0 ? "   <- prompts shared / not\n" : "\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
