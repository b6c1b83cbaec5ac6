// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/ModelConfig.hpp"

namespace taper::test {

// A small model of that vocabulary, for tests of its logits alone.
inline ModelConfig config_of(int vocab) {
  ModelConfig c;
  c.layers = 1;
  c.hidden = 64;
  c.heads = 8;
  c.kv_heads = 4;
  c.head_dim = 8;
  c.intermediate = 512;
  c.vocab = vocab;
  c.max_positions = 64;
  return c;
}

}  // namespace taper::test
