// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/SaveModel.hpp"

#include <memory>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "kernels/copy.hpp"
#include "optim/Ownership.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// All pieces to rank 0, one tensor at a time.
void write_weights(const ModelFiles& files, const TrainingModel& model, HuggingFaceWriter* writer) {
  const Ranks& ranks = model.ranks();
  const ParamTable& table = files.table;
  const auto& optimizer = model.optimizer();
  const Ownership owners = owned_pieces(table, ranks.chain, {0, model.layout()});
  PieceMover mover;
  const std::vector<std::int64_t> bytes = table.piece_bytes();
  std::vector<float> stage, buffer;
  const auto pieces = optimizer.owned();
  auto own = pieces.begin();
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const ParamTensor& tensor = table.tensors()[t];
    std::vector<PieceMove> moves;
    for (int u = 0; u < tensor.units; ++u) {
      const int piece = table.first_piece(t) + u;
      if (owners[piece].front() != 0) moves.push_back({piece, owners[piece].front(), 0});
    }
    // What this rank owns of a tensor lies in one piece.
    const auto first = own;
    while (own != pieces.end() && table.tensor_of_piece(own->id) == t) ++own;
    std::span<const float> masters;
    if (first != own)
      masters = host_values(
          ranks.exec,
          ConstFloatVector(optimizer.master().data() + (first->offset - optimizer.begin()),
                           static_cast<std::size_t>((own - first) * tensor.unit_size())),
          buffer);
    const auto source = [&](int piece) {
      return masters.data() + (piece - first->id) * tensor.unit_size();
    };
    if (ranks.rank() == 0)
      stage.resize(static_cast<std::size_t>(tensor.units * tensor.unit_size()));
    const auto target = [&](int piece) {
      return stage.data() + (piece - table.first_piece(t)) * tensor.unit_size();
    };
    mover.move(ranks.world(), OwnMoves(ranks.world(), moves, bytes), source, target);
    if (writer == nullptr) continue;
    for (int u = 0; u < tensor.units; ++u) {
      const int piece = table.first_piece(t) + u;
      const float* values = owners[piece].front() == 0 ? source(piece) : target(piece);
      writer->write_piece(piece, {values, static_cast<std::size_t>(tensor.unit_size())});
    }
  }
}

}  // namespace

void write_companions(const fs::path& source, const ModelConfig& config, TensorType type,
                      const fs::path& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "chat_template.jinja"})
    if (fs::exists(source / name))
      fs::copy_file(source / name, directory / name, fs::copy_options::overwrite_existing);
  write_file_atomically(
      directory / "config.json",
      model_config_json(config, type == TensorType::kBf16 ? "bfloat16" : "float32"));
}

void require_target(const std::string& option, const fs::path& directory, const std::string& file,
                    const std::string& kind, const std::string& newcomer) {
  TAPER_VALIDATE(!fs::exists(directory) || fs::exists(directory / file) ||
                     (fs::is_directory(directory) && fs::is_empty(directory)),
                 option << " " << path_text(directory) << " contains something other than " << kind
                        << " (" << newcomer << " would replace it); name a new directory");
}

void require_model_target(const std::string& option, const fs::path& directory) {
  require_target(option, directory, "config.json", "a model", "the trained model");
}

void write_model(const ModelFiles& files, const TrainingModel& model, const fs::path& directory) {
  const Ranks& ranks = model.ranks();
  std::unique_ptr<HuggingFaceWriter> writer;
  const TensorType type =
      model.weight_type() == WeightType::kBf16 ? TensorType::kBf16 : TensorType::kF32;
  if (ranks.rank() == 0) {
    write_companions(files.directory, files.config, type, directory);
    writer =
        std::make_unique<HuggingFaceWriter>(directory / "model.safetensors", files.table, type);
  }
  write_weights(files, model, writer.get());
  if (ranks.rank() == 0) writer->commit();
  barrier(ranks.world());
}

void save_model(const ModelFiles& files, const TrainingModel& model, const fs::path& directory) {
  const Ranks& ranks = model.ranks();
  const fs::path target = without_end_slash(directory);
  const fs::path aside = target.string() + ".writing";
  AsideDirectory writing(ranks.rank() == 0 ? aside : "");
  write_model(files, model, aside);
  if (ranks.rank() == 0) writing.rename_to(target);
  barrier(ranks.world());
}

}  // namespace taper
