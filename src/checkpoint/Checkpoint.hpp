// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/StateFile.hpp"

namespace taper {

// A model of a checkpoint beside the policy. What it refers to must outlive it.
struct CheckpointPart {
  std::string name;  // of its folder
  const ModelFiles& files;
  TrainingModel* model;   // null on ranks that do not train it
  bool is_needed = true;  // a checkpoint without it, or with one of another shape, is of no use
  // A file beside it, by its place in the checkpoint, and its text, which is JSON: with another one
  // the model there means something else. Empty: none.
  std::filesystem::path text_file = {};
  std::string text = {};
};

// The checkpoints of a run: DIR/iter_NNNNNN, each a Hugging Face directory with state.h5 and
// manifest.json, and such a directory in a folder for each other model that the run trains. A
// checkpoint is written aside and renamed when it is complete, so a killed run never damages an
// older one.
class CheckpointStore {
 public:
  CheckpointStore(std::filesystem::path directory, int keep)
      : directory_(std::move(directory)), keep_(keep) {}

  // Saves the state after info.iteration and removes the oldest beyond `keep`; `model` is null on
  // ranks that do not train it. When everything is written, but the checkpoint not there yet, all
  // ranks call `before_rename`: for what must not be missing if the checkpoint exists. Collective
  // over the world.
  void save(const Ranks& ranks, const ModelFiles& files, const TrainingModel* model,
            const StateInfo& info, const std::function<void()>& before_rename,
            const std::vector<CheckpointPart>& parts = {});

  // The checkpoint after that iteration is not removed by save(), however old it is.
  void keep_always(std::optional<std::int64_t> iteration) { kept_ = iteration; }
  bool has(std::int64_t iteration) const;

  // Removes what killed runs left half-written, and puts back a checkpoint that was about to be
  // replaced. One rank only, before loading.
  void remove_unfinished() const;

  // Removes checkpoints of later iterations: if a run starts over or from an older state, they
  // would pass for its own. One rank only, before the first save.
  void remove_after(std::int64_t iteration) const;

  // Fills the models from the newest checkpoint that is whole; a damaged one is named in a warning
  // and the one before is tried. Nothing if there is none. Throws Error if there are some and
  // none is usable. Collective over the world.
  std::optional<StateInfo> load_newest(const Ranks& ranks, const ModelFiles& files,
                                       TrainingModel* model,
                                       const std::vector<CheckpointPart>& parts = {}) const;

  // Fills the models from one checkpoint directory. Collective over the world.
  static StateInfo load(const std::filesystem::path& checkpoint, const Ranks& ranks,
                        const ModelFiles& files, TrainingModel* model,
                        const std::vector<CheckpointPart>& parts = {});

  // The state of such a model in a checkpoint. Throws Error if it has none.
  static std::filesystem::path part_state(const std::filesystem::path& checkpoint,
                                          const std::string& name);

  // What is said of checkpoints that cannot be used, by whoever finds it. The latter two throw
  // Error (kBadInput).
  static void warn_passed_over(const std::filesystem::path& checkpoint, const std::string& problem);
  [[noreturn]] static void fail_unusable(const std::filesystem::path& checkpoint,
                                         const std::string& problem);
  [[noreturn]] static void fail_none_usable(const std::filesystem::path& directory,
                                            const std::string& last_problem);

  // The checkpoints of a folder by their names, newest first; none if there is no such folder.
  static std::vector<std::filesystem::path> list(const std::filesystem::path& directory);

  // What runs that were killed while saving have left half-written.
  static std::vector<std::filesystem::path> unfinished(const std::filesystem::path& directory);

  // The checkpoints that a kill caught being replaced: what they were stands in old_path() of each,
  // oldest first.
  static std::vector<std::filesystem::path> being_replaced(const std::filesystem::path& directory);

  // Whether a directory holds a manifest, the last file of a checkpoint to be written.
  static bool is_checkpoint(const std::filesystem::path& directory);

  // manifest_problems() on a process alone.
  static std::vector<std::string> problems(const std::filesystem::path& checkpoint);

 private:
  std::filesystem::path directory_;
  int keep_;
  std::optional<std::int64_t> kept_;
};

}  // namespace taper
