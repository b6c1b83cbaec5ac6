// SPDX-License-Identifier: Apache-2.0
#include "model/LayerWindows.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kernels/activation.hpp"
#include "model/GoldenModel.hpp"
#include "model/PackedBatch.hpp"
#include "model/RandomFloats.hpp"
#include "model/RandomWeights.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kLayers = 7, kRows = 40;

// Drawn weights in the shape of a golden model, with more layers, whole on each rank.
class DeepModel {
 public:
  DeepModel()
      : config_(deep(read_model_config(golden_dir("llama_b")))),
        table_(config_),
        parallel_(table_, self_, Arithmetic::kF32),
        local_(table_, parallel_.shard()),
        rope_(staged(make_rope_table(config_, 512))),
        shape_(table_, parallel_.shard()),
        arena_(plan()),
        packed_("test", local_, parallel_.shard(), WeightType::kF32, WithBackward::kNo, arena_) {
    Staged<float> values(static_cast<std::size_t>(local_.size()));
    for (const auto& piece : local_.pieces())
      draw_piece(table_, piece.id, 7,
                 {values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
    for (int t = 0; t < static_cast<int>(table_.tensors().size()); ++t)
      packed_.pack(exec_, t, values.data() + local_.offset(t));
    view_ = std::make_unique<ModelView>(packed_, parallel_.shard());
    batch_.set(exec_, {std::vector<std::int32_t>(kRows, 0), {kRows}});
    const std::int64_t layer =
        PackedBatch::pages(kRows, 1) * layer_page_floats(shape_, config_.head_dim, KvType::kF32);
    kv_.resize(static_cast<std::size_t>(kLayers * layer));
    pages_ = {make_layer_pages(shape_, config_.head_dim, KvType::kF32, kv_.data()), layer};
    activations_.resize(static_cast<std::size_t>(LayerActivations::floats(shape_, kRows)));
    partials_.resize(
        static_cast<std::size_t>(layer_scratch_floats(parallel_, config_.hidden, kRows)));
  }

  int hidden() const { return config_.hidden; }
  std::vector<float> stream() const { return random_floats(std::int64_t{kRows} * hidden(), 3); }

  std::vector<float> in_windows(const Group& group) {
    std::vector<float> x = stream();
    std::vector<float> memory(
        static_cast<std::size_t>(LayerWindows::floats(group, hidden(), kRows)));
    LayerWindows(group, kLayers)
        .forward(context(), *view_, pages_, activations(), matrix(x), memory.data());
    exec_.fence();
    return x;
  }

  // By definition, with `size` layers in a window.
  std::vector<float> expected(int size) {
    std::vector<float> x = stream();
    const std::vector<float> zero(x.size(), 0.0f);
    for (int begin = 0; begin < kLayers;) {
      const bool outer = begin == 0 || begin == kLayers - 1;
      const int end = outer ? begin + 1 : std::min(begin + size, kLayers - 1);
      const std::vector<float> input = x;
      for (int l = begin; l < end; ++l) {
        if (end - begin == 1) {
          forward_layer(context(), view_->layer(l), pages_.layer(l), activations(), matrix(x),
                        matrix(x));
          continue;
        }
        std::vector<float> attended(x.size());
        attend(context(), view_->layer(l), pages_.layer(l), activations(), matrix(attended),
               ConstFloatMatrix(zero.data(), kRows, hidden()),
               ConstFloatMatrix(input.data(), kRows, hidden()));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
        apply_mlp(context(), view_->layer(l), activations(), matrix(x), matrix(x));
      }
      begin = end;
    }
    return x;
  }

 private:
  static ModelConfig deep(ModelConfig config) {
    config.layers = kLayers;
    return config;
  }
  MemoryPlan plan() const {
    MemoryPlan plan;
    PackedModel::add_memory(plan, "test", local_, WeightType::kF32, WithBackward::kNo);
    return plan;
  }
  LayerContext context() {
    return {exec_,           parallel_,      config_,
            shape_,          batch_.batch(), ConstFloatMatrix(rope_.data(), 512, config_.head_dim),
            partials_.data()};
  }
  LayerActivations activations() { return {shape_, kRows, activations_.data()}; }
  FloatMatrix matrix(std::vector<float>& x) const { return make_matrix(x.data(), kRows, hidden()); }

  Exec exec_;
  Group self_ = Group::self();
  ModelConfig config_;
  ParamTable table_;
  ModelParallel parallel_;
  LocalParams local_;
  Staged<float> rope_;
  ActivationShape shape_;
  Arena arena_;
  PackedModel packed_;
  std::unique_ptr<ModelView> view_;
  PackedBatch batch_{nullptr, 0, 0};  // takes no memory on the host
  std::vector<float> kv_, activations_, partials_;
  PagedLayers pages_;
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double far = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    far += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    length += double(b[i]) * b[i];
  }
  return far / length;
}

}  // namespace

TEST_CASE("each rank has a layer of a window, and all get what one rank computes by definition") {
  const Group world = Group::world(MPI_COMM_WORLD);
  DeepModel model;
  const std::vector<float> windows = model.in_windows(world), exact = model.expected(1);
  CHECK(same_bits(windows, model.expected(world.size())));
  if (world.is_null()) CHECK(same_bits(windows, exact));
  if (!world.is_null()) CHECK_FALSE(same_bits(windows, exact));
  CHECK(distance(windows, exact) < 0.25);
}
