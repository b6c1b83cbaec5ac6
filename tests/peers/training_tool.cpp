// SPDX-License-Identifier: Apache-2.0
//
// training_tool MODEL TASK.json GRADIENTS.safetensors: what the training pass and the optimizer
// make of some sequences, for the comparison with PyTorch (tests/peers/compare_training.py). TASK:
// {"sequences": [[id, ...], ...], "steps": n, "learning_rate": r, "weight_decay": w, "clip_norm":
// c, "probe_ids": [id, ...], "arithmetic": "f32", "bf16" or "bf16-dot", of weights too}. The loss
// is minus the mean log-prob of all next tokens, all sequences are in each step. Writes the first
// gradient and prints {"losses": [before the first, after each of n steps], "grad_norms": [n],
// "probes":
// [...]}; probes are the log-probs of all probe_ids at each position of the first sequence but the
// last, position-major.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "model/LoadedModel.hpp"
#include "optim/ShardedAdamW.hpp"

using namespace taper;

namespace {

using nlohmann::json;

PackedSequences packed(const json& lists) {
  PackedSequences s;
  for (const auto& list : lists) {
    for (const std::int32_t id : list) s.ids.push_back(id);
    s.lengths.push_back(static_cast<int>(list.size()));
  }
  return s;
}

Arithmetic arithmetic(const json& task) {
  const std::string name = task.at("arithmetic");
  if (name == "f32") return Arithmetic::kF32;
  if (name == "bf16") return Arithmetic::kBf16;
  if (name == "bf16-dot" && kOnHost) return Arithmetic::kBf16Dot;
  throw std::runtime_error("arithmetic is '" + name + "', not f32, bf16 or, on CPUs, bf16-dot");
}

TrainPassOptions pass_for(const PackedSequences& sequences, const json& task) {
  TrainPassOptions options;
  options.max_rows = sequences.rows();
  options.max_sequences = static_cast<int>(sequences.lengths.size());
  options.precision.arithmetic = arithmetic(task);
  return options;
}

AdamWOptions adamw_options(const json& task) {
  AdamWOptions options;
  options.weight_decay = task.at("weight_decay");
  options.clip_norm = task.at("clip_norm");
  return options;
}

WeightType weight_type(const json& task) {
  return rounds_operands(arithmetic(task)) ? WeightType::kBf16 : WeightType::kF32;
}

class Training {
 public:
  Training(const std::string& directory, const json& task)
      : sequences_(packed(task.at("sequences"))),
        self_(Group::self()),
        model_(directory, self_, weight_type(task), pass_for(sequences_, task), sequences_.rows()),
        arena_(plan()),
        adamw_(model_.local, self_, self_, adamw_options(task), arena_) {
    set_precision(model_.exec, {arithmetic(task), KvType::kF32});
    model_.pack();  // weights lie as their products want them
    std::copy_n(model_.values.begin(), adamw_.size(), adamw_.master().data());
  }

  // Of one step.
  double accumulate() {
    model_.gradients->clear(model_.exec);
    return model_.train(sequences_);
  }
  void write_gradients(const std::string& file) const { model_.write_gradients(file); }

  double step(double rate) {
    const double norm = adamw_.step(model_.exec, *model_.gradients, rate).grad_norm;
    std::copy_n(adamw_.master().data(), adamw_.size(), model_.values.begin());
    model_.pack();
    return norm;
  }

  std::vector<float> probe(const std::vector<std::int32_t>& ids) {
    std::vector<int> rows;
    std::vector<std::int32_t> targets;
    for (int row = 0; row + 1 < sequences_.lengths.front(); ++row)
      for (const auto id : ids) {
        rows.push_back(row);
        targets.push_back(id);
      }
    std::vector<float> log_probs(rows.size());
    model_.pass->forward(model_.exec, *model_.view, model_.parallel, sequences_);
    model_.pass->log_probs(model_.exec, *model_.view, model_.parallel, rows, targets,
                           {model_.config.vocab, 1.0f}, log_probs, {});
    return log_probs;
  }

 private:
  MemoryPlan plan() {
    MemoryPlan plan;
    ShardedAdamW::add_memory(plan, model_.local, self_, {});
    return plan;
  }

  PackedSequences sequences_;
  Group self_;
  test::LoadedModel model_;
  Arena arena_;
  ShardedAdamW adamw_;
};

json answer(const std::string& directory, const json& task, const std::string& gradients) {
  Training training(directory, task);
  json reply;
  reply["probes"] = training.probe(task.at("probe_ids"));
  reply["losses"].push_back(training.accumulate());
  training.write_gradients(gradients);
  for (int step = 0; step < task.at("steps").get<int>(); ++step) {
    reply["grad_norms"].push_back(training.step(task.at("learning_rate")));
    reply["losses"].push_back(training.accumulate());
  }
  return reply;
}

json read_task(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  return json::parse(file);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int failed = 0;
  try {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    if (argc != 4)
      throw std::runtime_error("usage: training_tool MODEL TASK.json GRADIENTS.safetensors");
    std::cout << answer(argv[1], read_task(argv[2]), argv[3]).dump() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "training_tool: " << error.what() << '\n';
    failed = 1;
  }
  MPI_Finalize();
  return failed;
}
