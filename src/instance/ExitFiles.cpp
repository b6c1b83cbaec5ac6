// SPDX-License-Identifier: Apache-2.0
#include "instance/ExitFiles.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/InputPath.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

template <class Value>
bool is_ascending(const std::vector<Value>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

template <class Value>
std::vector<Value> read_list(const std::filesystem::path& file, const char* key) {
  const Json json = read_json_file(file);
  const auto is_index = [](const Json& value) {
    using Limits = std::numeric_limits<std::int32_t>;
    return value.is_number_integer() && value >= Limits::min() && value <= Limits::max();
  };
  const bool is_list = json.is_object() && json.contains(key) && json[key].is_array() &&
                       std::all_of(json[key].begin(), json[key].end(), is_index);
  TAPER_VALIDATE(is_list, path_text(file) << " has no list of integers '" << key
                                          << "'; make the exits again (taper exits)");
  return json[key].get<std::vector<Value>>();
}

}  // namespace

std::filesystem::path ExitFiles::head_directory(const std::filesystem::path& directory,
                                                int layers) {
  return directory / ("layer-" + std::to_string(layers));
}

std::string ExitFiles::list_text(const std::vector<int>& layers,
                                 const std::vector<std::int32_t>& ids) {
  return Json{{"layers", layers}, {"ids", ids}}.dump() + "\n";
}

void ExitFiles::require_layers(const std::vector<int>& layers, const ModelFiles& model,
                               const std::string& option) {
  const int all = model.config.layers;
  TAPER_VALIDATE(
      !layers.empty() && is_ascending(layers) && layers.front() > 0 && layers.back() < all,
      option << " is " << join(layers) << " (" << path_text(model.directory) << " has " << all
             << " layers: exits are behind 1 to " << all - 1
             << " of them, in ascending order); name one or more of these in this order");
}

ExitFiles::ExitFiles(const std::filesystem::path& directory, const std::string& option,
                     const ModelFiles& model) {
  const auto list = list_file(directory);
  require_input_path(option, directory);
  TAPER_VALIDATE(std::filesystem::exists(list),
                 option << " is " << path_text(directory)
                        << " (no exits.json in it); name a directory of taper exits, or the folder "
                           "exits of a checkpoint");
  layers_ = read_list<int>(list, "layers");
  ids_ = read_list<std::int32_t>(list, "ids");
  require_layers(layers_, model, path_text(list) + ": layers");
  TAPER_VALIDATE(
      !ids_.empty() && is_ascending(ids_) && ids_.front() >= 0 && ids_.back() < model.valid_ids(),
      path_text(list) << " has ids that are not ascending ids below " << model.valid_ids()
                      << ", those of " << path_text(model.directory)
                      << "; make exits of this model");
  for (const int layers : layers_) {
    const ModelFiles& head =
        heads_.emplace_back(head_directory(directory, layers), option, HeadChoice{.of_exit = true});
    TAPER_VALIDATE(head.config.layers == 0 && head.config.tied &&
                       head.config.hidden == model.config.hidden &&
                       head.config.vocab == static_cast<int>(ids_.size()),
                   path_text(head.directory)
                       << " is no head of an exit (expected: no layers, a tied embedding of "
                       << ids_.size() << " x " << model.config.hidden
                       << "); make exits of this model (taper exits)");
  }
}

}  // namespace taper
