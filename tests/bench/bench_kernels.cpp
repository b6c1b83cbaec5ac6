// SPDX-License-Identifier: Apache-2.0
//
// Times kernels on this machine, with two yardsticks of the same run: how fast memory is read and
// how many fused multiply-adds the processor does.
//   bench_kernels [--op NAME]... [--seconds S]     all operations, 0.5 s each, unless told
//   otherwise
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"

using namespace taper;
using namespace taper::test;

namespace {

struct BenchOptions {
  std::vector<std::string> ops;  // empty: all
  double seconds = 0.5;
};

[[noreturn]] void fail(const std::string& problem) {
  std::fprintf(stderr, "bench_kernels: %s\n", problem.c_str());
  std::exit(2);
}

BenchOptions read_options(const std::vector<std::string>& arguments) {
  BenchOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) fail(arguments[i] + " needs a value");
    if (arguments[i] == "--op")
      options.ops.push_back(arguments[i + 1]);
    else if (arguments[i] == "--seconds")
      options.seconds = std::atof(arguments[i + 1].c_str());
    else
      fail("unknown option " + arguments[i] + " (know --op, --seconds)");
  }
  return options;
}

// Memory read: the sum of squares of 256 MB is bound by it.
void measure_memory(const Stopwatch& watch) {
  const Floats x(std::size_t{1} << 26, 0.25f);
  const auto task = detail::host_ops().sum_squares;
  constexpr int kParts = 64;
  std::vector<double> sums(kParts);
  watch.measure(
      "yardstick: memory read",
      [&] {
        detail::for_each("taper::bench_read", HostExec(), kParts, [&](const int i) {
          sums[i] = task(x.data() + i * (x.size() / kParts),
                         static_cast<std::int64_t>(x.size() / kParts));
        });
      },
      4.0 * x.size(), 0);
}

// Peak of fused multiply-adds: a product of 6 rows whose panel stays in the first cache.
void measure_peak(const Stopwatch& watch) {
  constexpr int kRows = 6, kInputs = 64, kRepeats = 2000;
  const Floats x = random_floats(kRows * kInputs, 1), w = random_floats(kInputs * 64, 2);
  const auto task = detail::host_ops().product;
  const int threads = HostExec().concurrency();
  watch.measure(
      "yardstick: 6 x 64 x 64 product in cache",
      [&] {
        detail::for_each("taper::bench_peak", HostExec(), threads, [&](int) {
          float y[kRows * 64];
          detail::ProductArgs args;
          args.a = x.data();
          args.a_row = kInputs;
          args.w = w.data();
          args.leaf_k = args.last_leaf_k = kInputs;
          args.y = y;
          args.y_row = args.columns = 64;
          args.rows = kRows;
          for (int i = 0; i < kRepeats; ++i) task(args, 0, kRows, 0);
        });
      },
      0, 2.0 * threads * kRepeats * kRows * kInputs * 64);
}

void run(const BenchOptions& options) {
  flush_denormals();
  const Stopwatch watch(options.seconds);
  std::printf("instruction set %s, %d threads\n", to_string(detail::host_ops().set),
              HostExec().concurrency());
  measure_memory(watch);
  measure_peak(watch);
  for (const std::string& wish : options.ops) {
    bool known = false;
    for (const Op& op : all_ops()) known = known || op.name == wish;
    if (!known) fail("no operation " + wish);
  }
  for (const Op& op : all_ops()) {
    bool wanted = options.ops.empty();
    for (const std::string& wish : options.ops) wanted = wanted || op.name == wish;
    if (!wanted) continue;
    std::printf("%s\n", op.name.c_str());
    op.time(watch);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  run(read_options({argv + 1, argv + argc}));
}
