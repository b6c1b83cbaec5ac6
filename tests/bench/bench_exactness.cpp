// SPDX-License-Identifier: Apache-2.0
//
// What training costs of which no bit depends on the layout (Training/Exactness: layout): a step of
// it, forward, backward, AdamW and publishing, in turns with a step of plain f32 sums, so that each
// ratio is of two times that follow one another. Prints a table with the median and the quartiles.
//
// How accurate the sums are: the gradient of a matrix of weights over 16,384 random tokens by both
// ways, against sums in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

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
#include "session/Startup.hpp"

using namespace taper;

namespace {

struct BenchOptions {
  std::string model;
  int tp = 1;
  int samples = 64, length = 64;
  int max_tokens = 2048;
  std::vector<int> bundles = {256, 512, 1024, 2048};
  int repeats = 5;
};

// A model that is trained on the same samples over and over.
class Trained {
 public:
  Trained(const BenchOptions& options, ModelFiles& files, const Ranks& ranks,
          GradientType gradients)
      : options_(options),
        ranks_(ranks),
        model_(files, ranks, model_options(options, gradients)),
        head_{files.valid_ids(), 1.0f} {
    MemoryPlan plan;
    model_.add_memory(plan);
    arena_ = std::make_unique<Arena>(plan);
    model_.create(*arena_, files.rope_table(options.length));
    model_.load_masters();
    RandomStream random(1, RandomPurpose::kTest, 0, 0);
    for (int s = 0; s < options.samples; ++s) {
      std::vector<std::int32_t> ids;
      for (int i = 0; i <= options.length; ++i)
        ids.push_back(static_cast<std::int32_t>(random.below(files.valid_ids())));
      samples_.push_back(std::move(ids));
    }
  }

  // Seconds of a step in micro-batches of bundles, or as large as there is room (0).
  double step(int bundle_tokens) {
    TrainPassOptions pass = model_options(options_, GradientType::kF32).pass;
    pass.bundle_tokens = bundle_tokens;
    const Group& dp = model_.dp_group();
    const auto batches = micro_batches_of(std::vector<int>(samples_.size(), options_.length),
                                          dp.size(), dp.rank(), pass);
    const TokenSlope slope{-1.0f / static_cast<float>(options_.samples * options_.length), 0.0f};
    barrier(ranks_.world());
    const Timer timer;
    model_.gradients().clear(ranks_.exec);
    for (const auto& batch : batches) {
      PackedSamples packed;
      for (const int i : batch)
        packed.add({samples_[i].data(), 1}, {samples_[i].data() + 1, samples_[i].size() - 1});
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

 private:
  static TrainingModelOptions model_options(const BenchOptions& options, GradientType gradients) {
    TrainingModelOptions o;
    o.train_tp = o.rollout_tp = options.tp;
    o.pass.max_rows = options.max_tokens;
    o.pass.gradients = gradients;
    return o;
  }

  const BenchOptions& options_;
  const Ranks& ranks_;
  TrainingModel model_;
  HeadOptions head_;
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
    Staged<float> values(sums.size());
    read_gradient(Exec(), VectorView<float, Exec>(values.data(), values.size()), gradient);
    Exec().fence();
    Errors errors;
    double squares = 0.0, largest = 0.0;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      const double error = values[i] - exact_[i];
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
  Trained plain(options, files, ranks, GradientType::kF32),
      exact(options, files, ranks, GradientType::kFixed);
  std::vector<double> times;
  std::vector<std::vector<double>> ratios(options.bundles.size());
  for (int round = -1; round < options.repeats; ++round)  // the first one is to get warm
    for (std::size_t b = 0; b < options.bundles.size(); ++b) {
      const double before = plain.step(0), one = exact.step(options.bundles[b]),
                   after = plain.step(0);
      if (round < 0) continue;
      times.push_back(before);
      ratios[b].push_back(2 * one / (before + after));
    }
  if (ranks.rank() > 0) return 0;
  print_accuracy();
  std::printf("%d sequences of %d tokens, %d ranks, TP %d; plain sums: %.3f s a step\n",
              options.samples, options.length, ranks.size(), options.tp, quantile(times, 0.5));
  std::printf("bundle tokens   time, relative (median, quartiles)\n");
  for (std::size_t b = 0; b < options.bundles.size(); ++b)
    std::printf("%13d   %.3f (%.3f to %.3f)\n", options.bundles[b], quantile(ratios[b], 0.5),
                quantile(ratios[b], 0.25), quantile(ratios[b], 0.75));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_guarded([&] { return run(argc, argv); });
}
