// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "instance/ModelFiles.hpp"

namespace taper {

// The early exits of a model, a directory that `taper exits` writes: exits.json says behind how
// many layers they are and which ids their heads know; layer-N has the head behind N layers, a
// Hugging Face model without layers.
class ExitFiles {
 public:
  // `option` names the directory in errors. Throws Error if something is missing or if the heads
  // are not for this model.
  ExitFiles(const std::filesystem::path& directory, const std::string& option,
            const ModelFiles& model);

  static std::filesystem::path head_directory(const std::filesystem::path& directory, int layers);
  static std::filesystem::path list_file(const std::filesystem::path& directory) {
    return directory / "exits.json";
  }
  // The text of exits.json.
  static std::string list_text(const std::vector<int>& layers,
                               const std::vector<std::int32_t>& ids);
  // Throws Error unless there may be exits behind so many layers of the model, ascending. `option`
  // names the list.
  static void require_layers(const std::vector<int>& layers, const ModelFiles& model,
                             const std::string& option);

  // Layers before each exit, ascending, and the ids that the rows of their heads stand for, too.
  const std::vector<int>& layers() const { return layers_; }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  const std::list<ModelFiles>& heads() const { return heads_; }

 private:
  std::vector<int> layers_;
  std::vector<std::int32_t> ids_;
  std::list<ModelFiles> heads_;
};

}  // namespace taper
