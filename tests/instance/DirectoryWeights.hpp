// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "instance/ModelFiles.hpp"
#include "model/PackedModel.hpp"

namespace taper::test {

// Packs what a model holds from the directory, all of it on this rank.
inline void load_packed(const Exec& exec, const ModelFiles& files, PackedModel& packed) {
  const LocalParams& local = packed.local();
  const HuggingFaceReader reader = files.open_weights();
  std::vector<float> values(static_cast<std::size_t>(local.size()));
  for (const auto& piece : local.pieces())
    reader.read_piece(piece.id,
                      {values.data() + piece.offset, static_cast<std::size_t>(piece.size)});
  for (int t = 0; t < static_cast<int>(files.table.tensors().size()); ++t)
    packed.pack(exec, t, values.data() + local.offset(t));
  exec.fence();
}

}  // namespace taper::test
