// SPDX-License-Identifier: Apache-2.0
#include "simulate/Roofline.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>

#include "planner/PassModel.hpp"
#include "planner/StepModel.hpp"

using namespace taper;

namespace {

bool near(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::abs(b);
}

// Nothing but the roofline of the device.
MachineDescription bare() {
  MachineDescription m;
  m.device.step_us = m.device.layer_us = m.device.sampling_bytes = 0;
  return m;
}

}  // namespace

TEST_CASE("a step of one rank is the roofline by hand") {
  const MachineDescription m = bare();
  const ModelDescription llama;
  const double weights = 32.0 * (2.0 * 4096 * 128 * 40 + 3.0 * 4096 * 14336) + 128256.0 * 4096;
  // One sequence: weights and keys and values are streamed.
  CHECK(near(step_ns(m, llama, 1, {1, 1, 1000}), (weights * 2 + 1000 * 131072.0) / (3350 * 0.8)));
  // A thousand: products take longer.
  const double products = 2 * weights * 1000 / (989e3 * 0.6);
  CHECK(near(step_ns(m, llama, 1, {1000, 1000, 1000}), products + 1000 * 131072.0 / (3350 * 0.8)));
  MachineDescription slow = m;
  slow.device.step_us = 100;
  slow.device.layer_us = 2;
  slow.device.sequence_us = 3;
  slow.device.sampling_bytes = 4;
  CHECK(near(step_ns(slow, llama, 1, {7, 7, 70}) - step_ns(m, llama, 1, {7, 7, 70}),
             1000.0 * (100 + 32 * 2 + 7 * 3) + 7 * 128256.0 * 4 / (3350 * 0.8), 1e-6));
}

TEST_CASE("guesses cost products, draws and messages, but no weights and no keys a second time") {
  const MachineDescription m;
  const ModelDescription llama;
  const StepWork plain{2, 2, 2e4}, more{8, 2, 2e4, 6}, sequences{8, 8, 8e4};
  for (const int tp : {1, 4}) {
    const double verify = step_ns(m, llama, tp, more);
    CHECK(verify > step_ns(m, llama, tp, plain));
    CHECK(verify < step_ns(m, llama, tp, sequences));
  }
}

TEST_CASE("an all-reduce takes its base, its hops and its data") {
  MachineDescription m = bare();
  m.ranks = 16;
  CHECK(all_reduce_ns(m, 1, 1e6) == 0);
  CHECK(near(all_reduce_ns(m, 8, 1e6), 6600 + 14 * 600 + 2 * 7.0 / 8 * 1e6 / 200));
  // Two nodes: each rank sends its eighth.
  CHECK(near(all_reduce_ns(m, 16, 1e6),
             6600 + 14 * 600 + 2 * 7.0 / 8 * 1e6 / 200 + 2 * 5000 + 1e6 / 8 / 40));
  m.inside.form = AllReduceForm::kTree;
  CHECK(near(all_reduce_ns(m, 8, 1e6), 6600 + 6 * 600 + 2 * 7.0 / 8 * 1e6 / 200));
}

TEST_CASE("a better machine is never slower") {
  const MachineDescription m;
  const ModelDescription llama;
  const std::vector<std::function<void(MachineDescription&)>> better{
      [](auto& x) { x.device.tflops *= 2; },
      [](auto& x) { x.device.product_efficiency = 1; },
      [](auto& x) { x.device.memory_gb_s *= 2; },
      [](auto& x) { x.device.memory_efficiency = 1; },
      [](auto& x) { x.device.step_us = x.device.layer_us = 0; },
      [](auto& x) { x.inside.gb_s *= 2; },
      [](auto& x) { x.inside.hop_us = 0; },
      [](auto& x) { x.inside.form = AllReduceForm::kTree; }};
  for (const auto& change : better) {
    MachineDescription other = m;
    change(other);
    bool faster = false;
    for (const int tp : {1, 2, 4, 8})
      for (const int batch : {1, 16, 1024})
        for (const double context : {1.0, 4096.0}) {
          const StepWork work{batch, batch, batch * context};
          const double was = step_ns(m, llama, tp, work), is = step_ns(other, llama, tp, work);
          CHECK(is <= was);
          faster = faster || is < was;
        }
    CHECK(faster);
  }
}

TEST_CASE("the rank with the most heads decides") {
  MachineDescription m = bare();
  m.inside = {0, 0, 1e9, AllReduceForm::kRing};
  ModelDescription model;
  model.heads = 9;
  model.kv_heads = 3;
  model.mlp = 1;
  model.vocabulary = 1;
  const double one = step_ns(m, model, 1, {1, 1, 1e6}), two = step_ns(m, model, 2, {1, 1, 1e6});
  CHECK(near(two / one, 2.0 / 3, 1e-3));
}

TEST_CASE("the profile of a description gives its step times back") {
  const MachineDescription m;
  const ModelDescription llama;
  const LatencyProfile p = describe_profile(m, llama, {}, {1, 2, 4, 8}, {1024, 16384});
  CHECK(p.problems().empty());
  CHECK(p.degrees() == std::vector<int>{1, 2, 4, 8});
  CHECK(p.kv_bytes_per_position == 131072);
  const StepModel steps(p);
  for (const int tp : {1, 8})
    for (const int batch : {1, 5, 37, 200, 900})
      for (const int context : {100, 5000, 16000}) {
        const StepWork work{batch, batch, 1.0 * batch * context};
        const auto ns = static_cast<double>(
            steps.curve(tp, PairClass::kSameNode).decode_ns(batch, std::int64_t{batch} * context));
        CHECK(near(ns, step_ns(m, llama, tp, work), 0.02));
      }
  // Reading a prompt costs about its products.
  const double read =
      static_cast<double>(steps.curve(1, PairClass::kSameNode).prefill_ns(4000, 8192));
  CHECK(read > 0.8 * 2 * 7.5e9 * 4000 / (989e3 * 0.6));
  CHECK(read < 1.6 * 2 * 7.5e9 * 4000 / (989e3 * 0.6));
}

TEST_CASE("degrees are those that memory and KV heads allow") {
  MachineDescription m;
  ModelDescription llama;
  CHECK(possible_degrees(m, llama) == std::vector<int>{1, 2, 4, 8});
  m.device.memory_gb = 18;  // of which 14.4 for 16 GB of weights
  CHECK(possible_degrees(m, llama) == std::vector<int>{2, 4, 8});
  CHECK(kv_pool_bytes(m, llama, 1) < 0);
  llama.kv_heads = 4;
  CHECK(possible_degrees(m, llama) == std::vector<int>{2, 4});
  m.device.memory_gb = 1;
  CHECK(possible_degrees(m, llama).empty());
}

TEST_CASE("a pass is the roofline by hand, and learning three times that") {
  const MachineDescription m = bare();
  const ModelDescription llama;
  const double blocks = 32.0 * (2.0 * 4096 * 128 * 40 + 3.0 * 4096 * 14336), head = 128256.0 * 4096;
  PassSample work;
  work.rows = 2000;
  work.length = 500;
  const double products = 2 * blocks * 2000, scores = 4.0 * 32 * 4096 * 2000 * 250;
  CHECK(near(pass_ns(m, llama, 1, work), (products + scores) / (989e3 * 0.6)));
  work.targets = 100;
  CHECK(near(pass_ns(m, llama, 1, work), (products + 2 * head * 100 + scores) / (989e3 * 0.6)));
  PassSample learn = work;
  learn.kind = PassKind::kLearn;
  CHECK(near(pass_ns(m, llama, 1, learn), 3 * pass_ns(m, llama, 1, work)));
  // A group of four has a quarter of it, and two or four all-reduces a layer.
  const double exchange = 32 * all_reduce_ns(m, 4, 2000.0 * 4096 * 2);
  CHECK(near(pass_ns(m, llama, 4, work), pass_ns(m, llama, 1, work) / 4 + 2 * exchange));
  CHECK(near(pass_ns(m, llama, 4, learn), pass_ns(m, llama, 1, learn) / 4 + 4 * exchange));
}

TEST_CASE("an optimizer step sums gradients to their owners and brings masters back") {
  const MachineDescription m = bare();
  const ModelDescription llama;
  const double parameters = llama.parameters(), bytes_per_ns = 3350 * 0.8;
  CHECK(near(update_ns(m, llama, 1, 1), parameters * (16 + 2 + 24) / bytes_per_ns));
  CHECK(near(update_ns(m, llama, 1, 8), parameters * (16 + 2 + 24 / 8.0) / bytes_per_ns +
                                            0.5 * (all_reduce_ns(m, 8, parameters * 8) +
                                                   all_reduce_ns(m, 8, parameters * 4))));
  // Replicas of eight ranks fill nodes of eight: their sums cross between nodes.
  CHECK(update_ns(m, llama, 8, 2) > 0.5 * parameters / 8 * 12 * 2 * 0.5 / m.between.gb_s);
}

TEST_CASE("the passes of a described profile give its times back") {
  const MachineDescription m;
  const ModelDescription llama;
  const LatencyProfile profile = describe_profile(m, llama, {}, {1, 8}, {});
  const PassModel model(profile);
  CHECK(model.degrees() == std::vector{1, 8});
  CHECK(model.errors().back() < 0.01);
  PassSample work;
  work.kind = PassKind::kLearn;
  work.rows = 6000;
  work.targets = 4000;
  work.length = 3000;
  for (const int tp : {1, 8})
    CHECK(near(static_cast<double>(model.pass_ns(work.kind, tp, PairClass::kSameNode,
                                                 {work.rows, work.targets, 3000.0})),
               pass_ns(m, llama, tp, work), 0.02));
}
