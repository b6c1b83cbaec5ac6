// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/CutLayers.hpp"

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "checkpoint/SaveModel.hpp"
#include "io/AtomicFile.hpp"

namespace taper {
namespace {

void require_layers(const ModelFiles& files, const std::vector<int>& layers) {
  TAPER_VALIDATE(!layers.empty(), "no layer is named (" << path_text(files.directory) << " has "
                                                        << files.config.layers
                                                        << "); name at least one");
  for (const int layer : layers)
    TAPER_VALIDATE(layer >= 0 && layer < files.config.layers,
                   "layer " << layer << " does not exist (" << path_text(files.directory)
                            << " has layers 0 to " << files.config.layers - 1
                            << "); name layers of the model");
}

// The type of the weights in the directory, as far as it can be written.
TensorType stored_type(const ModelFiles& files) {
  const SafetensorsDir weights = SafetensorsDir::open(files.directory);
  const std::string name = hugging_face_tensors(files.table).front().name;
  return weights.tensor(name).type == TensorType::kBf16 ? TensorType::kBf16 : TensorType::kF32;
}

}  // namespace

void cut_layers(const ModelFiles& files, const std::vector<int>& layers,
                const std::filesystem::path& directory) {
  require_layers(files, layers);
  const HuggingFaceReader reader = files.open_weights();
  ModelConfig config = files.config;
  config.layers = static_cast<int>(layers.size());
  const ParamTable table(config);
  const TensorType type = stored_type(files);
  const auto target = without_end_slash(directory);
  const std::filesystem::path aside = target.string() + ".writing";
  AsideDirectory writing(aside);
  write_companions(files.directory, config, type, aside);
  HuggingFaceWriter writer(aside / "model.safetensors", table, type);
  std::vector<float> values;
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    const int source = files.table.index_of(
        tensor.role, tensor.layer < 0 ? -1 : layers[static_cast<std::size_t>(tensor.layer)]);
    values.resize(static_cast<std::size_t>(tensor.unit_size()));
    for (int unit = 0; unit < tensor.units; ++unit) {
      reader.read_piece(files.table.first_piece(source) + unit, values);
      writer.write_piece(table.first_piece(t) + unit, values);
    }
  }
  writer.commit();
  writing.rename_to(target);
}

}  // namespace taper
