// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "model/PackedModel.hpp"

namespace taper::test {

// Whether two models of one layout and type have the same bits for their forward pass.
inline bool same_weights(const PackedModel& a, const PackedModel& b) {
  const ParamTable& table = a.local().table();
  for (int t = 0; t < static_cast<int>(table.tensors().size()); ++t) {
    const PackedMatrix x = a.forward(t), y = b.forward(t);
    if (x.columns != y.columns || x.k != y.k || x.type != y.type) return false;
    const auto bytes = static_cast<std::size_t>(std::int64_t{round_up(x.columns, kPanelColumns)} *
                                                x.k * bytes_of(x.type));
    if (bytes > 0 && std::memcmp(x.data, y.data, bytes) != 0) return false;
    const ConstFloatVector v = a.vector(t), w = b.vector(t);
    if (v.size() != w.size()) return false;
    if (v.size() > 0 && std::memcmp(v.data(), w.data(), v.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

}  // namespace taper::test
