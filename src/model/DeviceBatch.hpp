// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/Activations.hpp"

namespace taper {

// The tokens of a pass in the memory of a device, always at the same place. Kernels of every layer
// read them; where they are staged, each would wait for the bus. On the host a batch is read where
// it is. Attention's scratch memory is here too.
class DeviceBatch {
 public:
  // Of passes of `rows` rows whose segments, at most `segments` that have tokens and those before
  // others, have `pages` pages each. `group` query heads share a KV head in steps of decoding
  // (kernels/attention.hpp), 0: there are none.
  struct Shape {
    int rows = 0, segments = 0, pages = 0, group = 0, head_dim = 0;
  };
  static std::int64_t floats(const Shape& shape);

  DeviceBatch(float* memory, const Shape& shape);

  // The batch as kernels read it, valid until the next call. The host must leave `staged` as it is
  // until an exec.fence().
  TokenBatch bring(const Exec& exec, const TokenBatch& staged) const;

 private:
  Shape shape_;
  float* memory_;
};

}  // namespace taper
