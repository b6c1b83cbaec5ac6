// SPDX-License-Identifier: Apache-2.0
#include "model/Layer.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "model/GoldenModel.hpp"
#include "model/RandomFloats.hpp"
#include "support/Bits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

const std::vector<int> kLengths{13, 1, 70};  // the last one has two pages
constexpr int kRows = 13 + 1 + 70;

// Layer 1 of a golden model on packed sequences, of which it sees only lengths and `x`.
class LayerRun {
 public:
  LayerRun(const std::string& name, const Group& group)
      : model_(name, group),
        shape_(model_.table, model_.parallel.shard()),
        activations_(LayerActivations::floats(shape_, kRows)),
        pages_(PackedBatch::pages(kRows, 3) *
               layer_page_floats(shape_, model_.config.head_dim, KvType::kF32)),
        partials_(layer_scratch_floats(model_.parallel, model_.config.hidden, kRows)),
        scratch_(BackwardScratch::floats(shape_, kRows, false)) {
    batch_.set(model_.exec, {std::vector<std::int32_t>(kRows, 0), kLengths});
  }

  int hidden() const { return model_.config.hidden; }
  const GoldenModel& model() const { return model_; }

  std::vector<float> forward(const std::vector<float>& x) {
    std::vector<float> out(x.size());
    forward_layer(context(), weights(), pages(), activations(),
                  make_matrix(out.data(), kRows, hidden()), input(x));
    return out;
  }
  // The output in place of the input.
  std::vector<float> forward_in_place(std::vector<float> x) {
    const FloatMatrix both = make_matrix(x.data(), kRows, hidden());
    forward_layer(context(), weights(), pages(), activations(), both, both);
    return x;
  }
  // The gradient by x from that by the output, and those of the parameters, which are added to.
  std::vector<float> backward(const std::vector<float>& x, std::vector<float> gradient) {
    forward(x);
    backward_layer(context(), weights(), pages(), activations(), model_.gradients->layer(1),
                   BackwardScratch(shape_, kRows, false, scratch_.data()),
                   make_matrix(gradient.data(), kRows, hidden()), input(x));
    return gradient;
  }

 private:
  LayerContext context() const {
    return {model_.exec,
            model_.parallel,
            model_.config,
            shape_,
            batch_.batch(),
            ConstFloatMatrix(model_.rope.data(), 512, model_.config.head_dim),
            const_cast<float*>(partials_.data())};
  }
  const LayerWeights& weights() const { return model_.view->layer(1); }
  LayerPages pages() {
    return make_layer_pages(shape_, model_.config.head_dim, KvType::kF32, pages_.data());
  }
  LayerActivations activations() { return {shape_, kRows, activations_.data()}; }
  ConstFloatMatrix input(const std::vector<float>& x) const {
    return ConstFloatMatrix(x.data(), kRows, hidden());
  }

  GoldenModel model_;
  ActivationShape shape_;
  std::vector<float> activations_, pages_, partials_, scratch_;
  PackedBatch batch_{nullptr, 0, 0};  // takes no memory on the host
};

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * b[i];
  return sum;
}

std::vector<float> plus(std::vector<float> a, double factor, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += static_cast<float>(factor * b[i]);
  return a;
}

// Families without more, with biases, and with norms over heads.
const std::vector<std::string> kFamilies{"llama_b", "qwen2_a", "qwen3_a"};

}  // namespace

TEST_CASE("a layer has the same bits for every tensor-parallel degree, also in place") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const auto& name : kFamilies) {
    INFO(name);
    LayerRun one(name, self);
    if (world.size() > std::min(one.model().config.heads, one.model().table.mlp_blocks())) continue;
    LayerRun many(name, world);
    const auto x = random_floats(std::int64_t{kRows} * one.hidden(), 1);
    const auto out = one.forward(x);
    CHECK_FALSE(same_bits(out, x));
    CHECK(same_bits(many.forward(x), out));
    CHECK(same_bits(many.forward_in_place(x), out));
  }
}

TEST_CASE("a row depends on the earlier rows of its own sequence only") {
  const Group self = Group::self();
  LayerRun run("llama_b", self);
  const int h = run.hidden();
  const auto x = random_floats(std::int64_t{kRows} * h, 1);
  auto other = x;
  constexpr int kChanged = 20;  // in the third sequence, which begins at row 14
  for (int i = 0; i < h; ++i) other[kChanged * h + i] += 1.0f;
  const auto a = run.forward(x), b = run.forward(other);
  CHECK(std::equal(a.begin(), a.begin() + kChanged * h, b.begin()));
  for (int r = kChanged; r < kRows; ++r) {
    INFO("row " << r);
    CHECK_FALSE(std::equal(a.begin() + r * h, a.begin() + (r + 1) * h, b.begin() + r * h));
  }
}

TEST_CASE("the backward pass gives the slope of the forward pass by its input") {
  const Group self = Group::self();
  for (const auto& name : kFamilies) {
    INFO(name);
    LayerRun run(name, self);
    const auto x = random_floats(std::int64_t{kRows} * run.hidden(), 1),
               by_out = random_floats(std::int64_t{kRows} * run.hidden(), 2);
    const auto by_x = run.backward(x, by_out);
    // A step along the gradient, by a small part of the length of x.
    const double length = std::sqrt(dot(by_x, by_x)), step = 0.1 / length;
    const double up = dot(by_out, run.forward(plus(x, step, by_x))),
                 down = dot(by_out, run.forward(plus(x, -step, by_x)));
    CHECK(std::abs((up - down) / 0.2 - length) < 5e-3 * length);
  }
}

TEST_CASE("the backward pass of shards is that of one rank, and adds to the gradients") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  LayerRun one("llama_b", self), many("llama_b", world);
  const auto x = random_floats(std::int64_t{kRows} * one.hidden(), 1),
             by_out = random_floats(std::int64_t{kRows} * one.hidden(), 2);
  const auto expected = one.backward(x, by_out);
  const auto difference = plus(many.backward(x, by_out), -1.0, expected);
  CHECK(std::sqrt(dot(difference, difference)) <= 1e-4 * std::sqrt(dot(expected, expected)));

  const GradientView query = one.model().gradients->layer(1).query;
  const std::vector<float> once(query.f32(), query.f32() + query.size());
  one.backward(x, by_out);
  const std::vector<float> twice(query.f32(), query.f32() + query.size());
  const auto rest = plus(twice, -2.0, once);
  CHECK(dot(once, once) > 0);
  CHECK(std::sqrt(dot(rest, rest)) <= 1e-4 * std::sqrt(dot(once, once)));
}
