// SPDX-License-Identifier: Apache-2.0
//
// Times products and attention of an 8-billion-parameter model where models live (the memory of the
// GPU in a build for GPUs), as shares of a yardstick of the same run: the rate of a large copy.
//   bench_device [--part products|attention] [--arithmetic f32|bf16] [--seconds S] [--scale N]
//                [--rows N]...
// scale: divides all widths and contexts, but for the width of heads (default 1). --rows: of
// products.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "device/Arena.hpp"
#include "device/Runtime.hpp"
#include "kernels/Staging.hpp"
#include "kernels/attention.hpp"
#include "kernels/copy.hpp"
#include "kernels/product.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;

namespace {

constexpr std::int64_t kBeyondCaches = 256 << 20;  // bytes of weights that are used in turn
constexpr int kTrainedRows = 1024;                 // from which on gradients are timed, too

struct Shape {
  const char* name;
  int columns, k;
  int leaf_k = 0;  // 0: no leaves
};
// Beside "query" and the last one, "output" and "down" show what leaves cost.
constexpr Shape kShapes[] = {{"query", 4096, 4096},
                             {"key, value", 2048, 4096},
                             {"output", 4096, 4096, 128},
                             {"gate, up", 28672, 4096},
                             {"down", 4096, 14336, 256},
                             {"down, leaves of 64", 4096, 14336, 64},
                             {"down in one chain", 4096, 14336}};

struct BenchOptions {
  Exec exec;
  std::string part;  // empty: both
  double seconds = 0.3;
  int scale = 1;
  std::vector<int> rows;
};

BenchOptions read_options(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--part" && (value == "products" || value == "attention"))
      options.part = value;
    else if (key == "--arithmetic" && (value == "f32" || value == "bf16"))
      options.exec.arithmetic = value == "bf16" ? Arithmetic::kBf16 : Arithmetic::kF32;
    else if (key == "--seconds" && !value.empty())
      options.seconds = std::atof(value.c_str());
    else if (key == "--scale" && std::atoi(value.c_str()) > 0)
      options.scale = std::atoi(value.c_str());
    else if (key == "--rows" && std::atoi(value.c_str()) > 0)
      options.rows.push_back(std::atoi(value.c_str()));
    else {
      std::fprintf(stderr,
                   "bench_device: expects [--part products|attention] [--arithmetic f32|bf16] "
                   "[--seconds S] [--scale N] [--rows N]...\n");
      std::exit(2);
    }
  }
  return options;
}

// Median seconds of calls of `action`, made for so long that the host's clock is exact enough.
double median_seconds(const BenchOptions& options, const std::function<void()>& action) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const int calls = options.seconds > 0 ? 10 : 1;  // between two looks at the clock
  std::vector<double> times;
  action();
  options.exec.fence();
  for (const auto start = Clock::now(); times.empty() || since(start) < options.seconds;) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) action();
    options.exec.fence();
    times.push_back(since(begin) / calls);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// Memory for floats, filled with random numbers.
class Values {
 public:
  Values(const Exec& exec, std::int64_t count) : count_(count), arena_(plan(count)) {
    data_ = arena_.take<float>("values", MemoryPhase::kAlways, count);
    const std::int64_t part = std::min<std::int64_t>(count, 1 << 20);
    std::vector<float> some(static_cast<std::size_t>(part));
    std::mt19937 random(1);
    for (float& value : some) value = static_cast<float>(random()) * 0x1p-32f - 0.5f;
    for (std::int64_t at = 0; at < count; at += part) {
      const auto n = std::min(part, count - at);
      copy_from_host(exec, VectorView<float, Exec>(data_ + at, n),
                     std::span<const float>(some.data(), static_cast<std::size_t>(n)));
    }
  }
  float* data() const { return data_; }
  std::int64_t size() const { return count_; }

 private:
  static MemoryPlan plan(std::int64_t count) {
    MemoryPlan plan;
    plan.add("values", MemoryPhase::kAlways, arena_bytes(4 * count));
    return plan;
  }
  std::int64_t count_;
  Arena arena_;
  float* data_ = nullptr;
};

// Weights in panels, as often as it takes to be read from memory and not from caches.
class Weights {
 public:
  Weights(const Exec& exec, int columns, int k, std::int64_t total) {
    const std::int64_t count = std::int64_t{columns} * k, bytes = 2 * count;
    const std::int64_t copies = std::max<std::int64_t>(1, total / bytes);
    const Values stored(exec, count);
    packed_ = std::make_unique<Values>(exec, copies * count / 2);
    for (std::int64_t i = 0; i < copies; ++i) {
      float* const to = packed_->data() + i * count / 2;
      pack_panels<Exec, float>(exec, to, WeightType::kBf16,
                               MatrixView<const float, Exec>(stored.data(), columns, k),
                               PackOrder::kRowsAreColumns);
      matrices_.push_back({to, WeightType::kBf16, columns, k, std::int64_t{k} * kPanelColumns});
    }
    exec.fence();
  }
  const PackedMatrix& next() { return matrices_[turn_++ % matrices_.size()]; }

 private:
  std::unique_ptr<Values> packed_;
  std::vector<PackedMatrix> matrices_;
  std::size_t turn_ = 0;
};

// Of all copies of a matrix: beyond caches, but for smoke runs.
std::int64_t weight_bytes(const BenchOptions& options) {
  return options.seconds > 0 ? kBeyondCaches : 0;
}

// Bytes per second of a copy, read and written.
double copy_rate(const BenchOptions& options) {
  const std::int64_t count = kBeyondCaches / 4 / options.scale / options.scale;
  const Values from(options.exec, count), to(options.exec, count);
  const double seconds = median_seconds(options, [&] {
    copy(options.exec, VectorView<float, Exec>(to.data(), count),
         VectorView<const float, Exec>(from.data(), count));
  });
  return 8.0 * static_cast<double>(count) / seconds;
}

void measure(const BenchOptions& options, const Shape& shape, double copied) {
  const int columns = shape.columns / options.scale, k = shape.k / options.scale;
  Weights weights(options.exec, columns, k, weight_bytes(options));
  const int leaf_k = shape.leaf_k == 0 ? k : std::min(shape.leaf_k, k);
  const ReductionTree tree((k + leaf_k - 1) / leaf_k, 1);
  const Staged<int> program = staged(tree.local_program({0, tree.leaves()}));
  const LeafOrder leaves{tree.leaves(),  leaf_k, leaf_k, k - (tree.leaves() - 1) * leaf_k,
                         program.data(), 1};
  const auto print = [&](const char* name, int rows, double bytes, double seconds) {
    std::printf("%-20s %6d x %-6d rows %5d  %10.1f us  %6.1f %% of the copy  %8.2f TFLOP/s\n", name,
                k, columns, rows, 1e6 * seconds, 100 * bytes / seconds / copied,
                2e-12 * columns * k * rows / seconds);
    std::fflush(stdout);
  };
  for (const int rows : options.rows.empty() ? std::vector{1, 16, 64, 256, 2048} : options.rows) {
    const Values x(options.exec, std::int64_t{rows} * k),
        y(options.exec, std::int64_t{rows} * columns),
        rounded(options.exec, (x.size() + y.size()) / 2);
    // As a training pass has it, and a generation for its prompts.
    const Exec exec = with_rounding(options.exec, rounded.data(), rounded.size());
    const MatrixView<const float, Exec> in(x.data(), rows, k);
    const MatrixView<float, Exec> out(y.data(), rows, columns);
    print(shape.name, rows, 2.0 * columns * k + 4.0 * rows * (columns + k),
          median_seconds(options, [&] {
            if (shape.leaf_k > 0)
              multiply_leaves(exec, out, in, weights.next(), leaves);
            else
              multiply(exec, out, in, weights.next());
          }));
    if (rows < kTrainedRows) continue;
    const Values gradient(options.exec, 2 * std::int64_t{columns} * k);
    const GradientView sums(gradient.data(), GradientType::kFixed, columns, k);
    print((std::string(shape.name) + ", gradient").c_str(), rows,
          16.0 * columns * k + 4.0 * rows * (columns + k), median_seconds(options, [&] {
            accumulate_outer(exec, sums, MatrixView<const float, Exec>(y.data(), rows, columns),
                             in);
          }));
  }
}

// Keys and values of `sequences` of `length` positions each, and queries of their last `count`.
class Sequences {
 public:
  Sequences(const BenchOptions& options, int sequences, int length, int count)
      : exec_(options.exec),
        shape_{32, 8, 4, 0, 128, 128},
        rows_(sequences * count),
        blocks_per_sequence_((length + kPage - 1) / kPage),
        type_(kv_type(options.exec)),
        pages_memory_(exec_, std::int64_t{sequences} * blocks_per_sequence_ * shape_.kv_heads *
                                 page_floats(shape_.head_dim, type_)),
        q_(exec_, std::int64_t{rows_} * width()),
        out_(exec_, q_.size()),
        stats_(exec_, std::int64_t{rows_} * shape_.heads * 2),
        kv_(exec_, std::int64_t{sequences} * length * kv_width()) {
    blocks_.resize(static_cast<std::size_t>(sequences) * blocks_per_sequence_);
    std::iota(blocks_.begin(), blocks_.end(), 0);
    Staged<AttentionSegment> all;
    for (int s = 0; s < sequences; ++s) {
      const std::int32_t* table = blocks_.data() + std::size_t(s) * blocks_per_sequence_;
      all.push_back({table, 0, length, s * length});
      segments_.push_back({table, length - count, count, s * count});
    }
    write_pages(
        exec_, pages(),
        MatrixView<const float, Exec>(kv_.data(), std::int64_t{sequences} * length, kv_width()),
        staging_view(all), shape_);
    exec_.fence();
  }

  void attend() const {
    attention(exec_, matrix(out_), MatrixView<float, Exec>(stats_.data(), rows_, shape_.heads * 2),
              const_matrix(q_), pages(), staging_view(segments_), shape_);
  }
  // Of whole sequences.
  void differentiate(const Values& dq, const Values& dkv) const {
    attention_backward(exec_, matrix(dq), MatrixView<float, Exec>(dkv.data(), rows_, kv_width()),
                       const_matrix(q_), const_matrix(out_),
                       MatrixView<const float, Exec>(stats_.data(), rows_, shape_.heads * 2),
                       const_matrix(q_), pages(), staging_view(segments_), shape_);
  }

  int width() const { return shape_.heads * shape_.head_pad; }
  int kv_width() const { return shape_.kv_heads * 2 * shape_.head_pad; }
  std::int64_t query_floats() const { return q_.size(); }
  std::int64_t kv_floats() const { return kv_.size(); }
  std::int64_t page_bytes() const { return 4 * pages_memory_.size(); }
  double pair_flops() const { return 2.0 * shape_.heads * shape_.head_dim; }  // of one product

 private:
  LayerPages pages() const {
    return make_pages(pages_memory_.data(), shape_.kv_heads, shape_.head_dim, type_);
  }
  MatrixView<float, Exec> matrix(const Values& v) const {
    return MatrixView<float, Exec>(v.data(), rows_, width());
  }
  MatrixView<const float, Exec> const_matrix(const Values& v) const {
    return MatrixView<const float, Exec>(v.data(), rows_, width());
  }

  const Exec& exec_;
  AttentionShape shape_;
  int rows_, blocks_per_sequence_;
  KvType type_;
  Values pages_memory_, q_, out_, stats_, kv_;
  Staged<std::int32_t> blocks_;
  Staged<AttentionSegment> segments_;
};

void measure_attention(const BenchOptions& options, double copied) {
  const int length = 2048 / options.scale;
  for (const int batch : {1, 16, 64}) {
    const Sequences decode(options, batch, length, 1);
    const double seconds = median_seconds(options, [&] { decode.attend(); });
    std::printf("attention, decode, context %d, batch %3d  %10.1f us  %6.1f %% of the copy\n",
                length, batch, 1e6 * seconds,
                100 * static_cast<double>(decode.page_bytes()) / seconds / copied);
  }
  const Sequences whole(options, 1, length, length);
  const Values dq(options.exec, whole.query_floats()), dkv(options.exec, whole.kv_floats());
  const double pairs = 0.5 * length * (length + 1.0);
  const double forward = median_seconds(options, [&] { whole.attend(); });
  const double backward = median_seconds(options, [&] { whole.differentiate(dq, dkv); });
  std::printf(
      "attention, %d tokens  forward %10.1f us  %8.2f TFLOP/s  backward %10.1f us  %8.2f TFLOP/s\n",
      length, 1e6 * forward, 2e-12 * pairs * whole.pair_flops() / forward, 1e6 * backward,
      5e-12 * pairs * whole.pair_flops() / backward);
}

}  // namespace

int main(int argc, char** argv) {
  const Runtime runtime(argc, argv);
  const BenchOptions options = read_options(argc, argv);
  const double copied = copy_rate(options);
  std::printf("copy: %.1f GB/s\n", 1e-9 * copied);
  if (options.part != "attention")
    for (const Shape& shape : kShapes) measure(options, shape, copied);
  if (options.part != "products") measure_attention(options, copied);
}
