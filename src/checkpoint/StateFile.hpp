// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "instance/TrainingModel.hpp"

namespace taper {

// Where a run that trains on given examples stands in them.
struct ExamplePosition {
  std::string command;            // whose examples, "sft"; empty of files of earlier versions
  std::uint64_t next = 0;         // position of the next example
  std::uint64_t fingerprint = 0;  // of all examples

  bool is_of(const std::string& name) const { return command.empty() || command == name; }
  friend bool operator==(const ExamplePosition&, const ExamplePosition&) = default;
};

// What a training run is besides its weights and moments. Random numbers follow from seed and
// iteration, prompts from the seed and the number of batches drawn before.
struct StateInfo {
  std::int64_t iteration = 0;        // finished iterations
  std::int64_t optimizer_steps = 0;  // of the model that it stands beside
  std::uint64_t seed = 0;
  std::string config;        // the parameters in use
  std::string planner = {};  // what it has learned (LayoutPlanner::save()); may be empty
  std::optional<ExamplePosition> examples = {};  // of fine-tuning
  std::optional<double> kl_coef = {};  // of the KL in the reward; not in files of earlier versions
  // Of Rollout/Prompts each; not in files of earlier versions, which drew one an iteration.
  std::optional<std::int64_t> prompt_batches = {};
  std::string rounds = {};  // unless they are plain: where they stand (train/Rollouts), integers
  // Of adaptive timeouts (Judge::anchors()): ns by a hash of reward and prompt; mostly none.
  std::map<std::uint64_t, std::int64_t> anchors = {};
  std::string layout = {};  // TPxDP of the training that wrote the file, set by write_state();
                            // empty of files of earlier versions
};

// state.h5: for each tensor /master, /first and /second (units, elements of a unit) f32 and /hash
// (units, 3), the checksum of each unit in each of them. Independent of how the writers shared the
// pieces.
//
// Each rank writes the pieces its optimizer owns. Collective over the ranks of the model.
void write_state(const std::filesystem::path& path, const ModelFiles& files,
                 const TrainingModel& model, const StateInfo& info);

// All but weights and moments, from the head of the file. Not collective. Throws Error if it is
// no such file, or of a model of another shape.
StateInfo read_state_info(const std::filesystem::path& path, const ModelFiles& files);

// Reads the pieces that this rank owns, whatever layout wrote them, and checks each. Not
// collective. Throws Error naming file, tensor and unit for damage, and if the model differs.
// The optimizer may be half-filled then.
StateInfo read_state(const std::filesystem::path& path, const ModelFiles& files,
                     TrainingModel& model);

// Compares every unit of the file with its checksum; a line for each tensor that differs,
// "/first/x: unit 3 is damaged (its checksum differs)". Throws Error if it cannot be read. Not
// collective.
std::vector<std::string> state_damage(const std::filesystem::path& path);

}  // namespace taper
