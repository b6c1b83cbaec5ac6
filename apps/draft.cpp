// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/CutLayers.hpp"
#include "checkpoint/SaveModel.hpp"
#include "instance/ModelFiles.hpp"
#include "io/FileLock.hpp"
#include "io/OutputPath.hpp"
#include "param/CommandLine.hpp"
#include "run/OutputLock.hpp"
#include "session/Startup.hpp"

namespace taper {

int run_draft(int argc, char** argv) {
  std::string model, output;
  std::vector<int> layers;
  param::CommandLine line("taper draft",
                          "Makes a draft model for speculation of some layers of a model, with its "
                          "embedding and head. It drafts well once it has been fine-tuned on "
                          "responses of the model (taper sft).");
  line.text("model", model, "DIR", "Hugging Face directory").required();
  line.list("layers", layers, "LIST", "layers from 0 on, in the order that they will have: 0,5,11")
      .required();
  line.text("output", output, "DIR", "directory of the draft model").required();
  if (line.parse_or_print_help(argc, argv)) return 0;
  // Started like the other commands, with several ranks: one of them writes.
  std::optional<MpiSession> session;
  if (is_one_of_several(process_environment)) session.emplace(argc, argv);
  if (session && session->rank() > 0) return 0;
  const ModelFiles files(model, "--model");
  require_output_directory("--output", output);
  require_model_target("--output", output);
  TAPER_VALIDATE(!std::filesystem::exists(output) || !std::filesystem::equivalent(model, output),
                 "--output " << path_text(output)
                             << " is --model (the draft model would replace "
                                "it); name another directory");
  FileLock lock(OutputLock::of_model(output), "--output " + path_text(output));
  lock.take();
  cut_layers(files, layers, output);
  TAPER_INFO("completed: " << count_text(std::ssize(layers), "layer") << " of "
                           << files.config.layers << ", draft model in " << path_text(output));
  return 0;
}

}  // namespace taper
