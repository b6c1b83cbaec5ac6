// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace taper {

struct CheckpointOptions {
  int every = 10;  // iterations; 0: only at the end
  int keep = 2;
};

}  // namespace taper
