// SPDX-License-Identifier: Apache-2.0
#include "inspect/RolloutText.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "instance/ModelFiles.hpp"
#include "results/RunDirectory.hpp"
#include "run/RunConfig.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// The model that the run file beside the rollouts names, or else a checkpoint, which has the same
// tokenizer: a relative name counts from where the run was started.
fs::path model_of_run(const fs::path& rollouts) {
  const RunDirectory directory(fs::absolute(rollouts).parent_path().parent_path());
  const fs::path run = directory.run_file();
  TAPER_VALIDATE(fs::exists(run), path_text(run)
                                      << " does not exist (it would name the model with the "
                                         "tokenizer); name the model with --model DIR");
  const fs::path model = recorded_text(run, "Model", "Directory", "");
  if (fs::exists(model / "config.json")) return model;
  const auto checkpoints = CheckpointStore::list(directory.checkpoints());
  TAPER_VALIDATE(
      !checkpoints.empty(),
      "the model "
          << path_text(model) << " of " << path_text(run)
          << " does not exist here, and there is no checkpoint; name the model with --model DIR");
  return checkpoints.front();
}

const char* finish_text(FinishReason finish) {
  switch (finish) {
    case FinishReason::kEos:
      return "end of sequence";
    case FinishReason::kStop:
      return "stop string, or given length";
    case FinishReason::kLength:
      return "length limit";
    case FinishReason::kAbort:
      return "aborted";
  }
  return "";
}

void show(std::ostream& out, const RolloutRecord& r, const std::vector<std::string>& names,
          const Tokenizer& tokenizer) {
  out << "--- prompt " << r.id.prompt << ", sample " << r.id.sample << ":";
  for (std::size_t i = 0; i < names.size(); ++i) {
    out << ' ' << names[i] << ' ';
    if (std::isnan(r.rewards[i]))  // its worker gave none
      out << "none,";
    else
      out << r.rewards[i] << ',';
  }
  out << " advantage " << r.advantage << ", " << finish_text(r.finish) << ", " << r.prompt_length
      << " + " << r.response_length() << " tokens\n";
  const std::vector<std::int32_t> prompt(r.tokens.begin(), r.tokens.begin() + r.prompt_length),
      response(r.tokens.begin() + r.prompt_length, r.tokens.end());
  // A chat's special tokens are worth seeing; the response is shown as it was judged.
  out << "[prompt]\n" << tokenizer.decode(prompt, SkipSpecial::kNo) << '\n';
  out << "[response]\n" << tokenizer.decode(response, SkipSpecial::kYes) << '\n';
}

}  // namespace

std::string rollout_text(const fs::path& path, int count, const fs::path& model) {
  TAPER_VALIDATE(fs::exists(path), path_text(path) << " does not exist; check the path");
  fs::path file = path;
  if (fs::is_directory(path)) {
    const auto files = rollout_files(RunDirectory(path).rollouts());
    TAPER_VALIDATE(!files.empty(), path_text(path) << " has no rollouts/*.h5 (only these and run "
                                                      "directories are shown as text)");
    file = files.back();
  }
  const RolloutSet set = read_rollouts_checked(file);
  const ModelFiles files(model.empty() ? model_of_run(file) : model, "--model");
  std::ostringstream out;
  out << path_text(file) << ": iteration " << set.iteration << ", "
      << count_text(std::ssize(set.records), "sample") << '\n';
  for (std::size_t i = 0; i < std::min<std::size_t>(count, set.records.size()); ++i)
    show(out, set.records[i], set.reward_names, files.tokenizer());
  return out.str();
}

RolloutSet read_rollouts_checked(const fs::path& file) {
  try {
    return read_rollouts(file);
  } catch (const Error& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               path_text(file) << " is damaged or not a rollout file (" << error.what() << ")");
  }
}

}  // namespace taper
