// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "instance/ModelFiles.hpp"

namespace taper::test {

inline std::vector<float> read_piece(const ModelFiles& files, const HuggingFaceReader& reader,
                                     int id) {
  const ParamTensor& tensor = files.table.tensors()[files.table.tensor_of_piece(id)];
  std::vector<float> values(static_cast<std::size_t>(tensor.unit_size()));
  reader.read_piece(id, values);
  return values;
}

}  // namespace taper::test
