// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Json.hpp"
#include "io/Safetensors.hpp"

namespace taper {

namespace {

// Tensor name -> file name, from model.safetensors.index.json.
std::map<std::string, std::string> read_index(const std::filesystem::path& path) {
  const Json index = read_json_file(path);
  TAPER_VALIDATE(
      index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
      path_text(path) << " has no \"weight_map\" (an object from tensor to file expected)");
  std::map<std::string, std::string> file_of;
  for (const auto& [name, file] : index["weight_map"].items()) {
    TAPER_VALIDATE(file.is_string(), path_text(path)
                                         << ": the file of tensor " << name << " is not a string");
    const auto text = file.get<std::string>();
    TAPER_VALIDATE(!text.empty() && text.find('/') == std::string::npos,
                   path_text(path) << ": the file of tensor " << name << " is \"" << text
                                   << "\" (a name within the directory expected)");
    file_of[name] = text;
  }
  return file_of;
}

}  // namespace

SafetensorsDir SafetensorsDir::open(const std::filesystem::path& directory) {
  SafetensorsDir dir;
  dir.path_ = path_text(directory);
  TAPER_VALIDATE(
      std::filesystem::is_directory(directory),
      dir.path_ << " is not a directory (a model directory expected); " << path_advice(directory));
  const auto single = directory / "model.safetensors";
  const auto index = directory / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) {
    dir.files_.push_back(SafetensorsFile::open(single));
    for (const auto& name : dir.files_[0].names()) dir.file_of_[name] = 0;
    return dir;
  }
  TAPER_VALIDATE(std::filesystem::exists(index),
                 dir.path_ << " contains no weights (neither model.safetensors nor "
                              "model.safetensors.index.json); give a Hugging Face model directory");
  std::map<std::string, std::size_t> opened;
  for (const auto& [name, file] : read_index(index)) {
    if (opened.emplace(file, dir.files_.size()).second)
      dir.files_.push_back(SafetensorsFile::open(directory / file));
    const auto slot = opened.at(file);
    TAPER_VALIDATE(dir.files_[slot].contains(name), path_text(index)
                                                        << " places tensor " << name << " in "
                                                        << file << " (which does not have it)");
    dir.file_of_[name] = slot;
  }
  return dir;
}

std::vector<std::string> SafetensorsDir::names() const {
  std::vector<std::string> found;
  for (const auto& [name, slot] : file_of_) found.push_back(name);
  return found;
}

const SafetensorsFile& SafetensorsDir::file_of(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found != file_of_.end()) return files_[found->second];
  const std::string close = nearest(name, names());
  TAPER_FAIL(ExitCode::kBadInput, path_ << " has no tensor " << name
                                        << (close.empty() ? "" : " (did you mean " + close + "?)"));
}

}  // namespace taper
