// SPDX-License-Identifier: Apache-2.0
#include "tune/TuningOptions.hpp"

#include <algorithm>

#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// figures: those by which one state of the weights can be better than another.
void add_validation_problems(const TuningOptions& o, const std::vector<std::string>& files,
                             const std::vector<std::string>& figures,
                             std::vector<std::string>& list) {
  const bool known = std::find(figures.begin(), figures.end(), o.best_by) != figures.end();
  if (!o.best_by.empty() && !known)
    list.push_back("Validation/Best By is " + o.best_by +
                   ", which no evaluation produces; the metrics are " + join(figures));
  if (!o.best_by.empty() && o.validate_every == 0)
    list.push_back("Validation/Best By is " + o.best_by +
                   ", but Validation/Every is 0 (nothing is measured during the run); set it");
  if (o.validate_every > 0 && files.empty())
    list.push_back("Validation/Every is " + std::to_string(o.validate_every) +
                   ", but there are no Data/Validation Files; name some, or set Validation/Every "
                   "to 0");
}

}  // namespace

std::vector<std::string> TuningOptions::problems() const {
  std::vector<std::string> list;
  if (is_within(run_path(), output))
    list.push_back("Output/Run Directory is " + path_text(run_path()) +
                   ", which is Output/Directory or lies in it (the trained model would replace the "
                   "metrics and checkpoints there); name a directory beside it");
  if (!model.directory.empty() && is_within(model.directory, output))
    list.push_back("Output/Directory is " + path_text(output) +
                   ", which is Model/Directory or contains it (the trained model would replace "
                   "that model); name another directory");
  return list;
}

std::vector<std::string> SftOptions::problems() const {
  std::vector<std::string> list = TuningOptions::problems();
  if (epochs > 0 && data.files.empty())
    list.push_back("Training/Epochs is " + std::to_string(epochs) +
                   ", but there are no Data/Files (in-tree tasks have no end); name files, or set "
                   "Training/Steps and leave Training/Epochs at 0");
  add_validation_problems(*this, data.validation_files, {"val/loss"}, list);
  return list;
}

std::vector<std::string> RewardModelOptions::problems() const {
  std::vector<std::string> list = TuningOptions::problems();
  if (data.files.empty())
    list.push_back("Data/Files is not set (JSONL files of preference pairs); name some");
  if (epochs == 0 && steps == 0)
    list.push_back(
        "Training/Epochs and Training/Steps are both 0 (nothing would be learned); set "
        "one");
  add_validation_problems(*this, data.validation_files, {"val/loss", "val/accuracy", "val/margin"},
                          list);
  return list;
}

std::string TuningOptions::run_path() const {
  return run_directory.empty() ? without_end_slash(output).string() + ".run" : run_directory;
}

}  // namespace taper
