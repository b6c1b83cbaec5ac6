// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelOptions.hpp"

#include "base/Path.hpp"

namespace taper {

std::vector<std::string> ModelOptions::problems() const {
  if (directory.empty())
    return {"Model/Directory is not set (a Hugging Face directory is expected, e.g. data/model); " +
            path_advice("")};
  return {};
}

TrainPassOptions PassOptions::train_pass() const {
  TrainPassOptions pass;
  pass.max_rows = max_tokens;
  pass.checkpointing = checkpointing ? Checkpointing::kYes : Checkpointing::kNo;
  return pass;
}

}  // namespace taper
