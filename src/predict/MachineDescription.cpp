// SPDX-License-Identifier: Apache-2.0
#include "predict/MachineDescription.hpp"

namespace taper {

std::vector<std::string> MachineDescription::problems() const {
  std::vector<std::string> list;
  if (ranks % ranks_per_node != 0 && ranks > ranks_per_node)
    list.push_back("Machine/Ranks is " + std::to_string(ranks) +
                   " (nodes are filled); make it a multiple of Machine/Ranks Per Node, which is " +
                   std::to_string(ranks_per_node));
  return list;
}

double ModelDescription::attention_parameters() const {
  return 2.0 * hidden * head_size * (heads + kv_heads);
}

double ModelDescription::mlp_parameters() const {
  return 3.0 * hidden * mlp;
}

double ModelDescription::head_parameters() const {
  return 1.0 * vocabulary * hidden;
}

double ModelDescription::parameters() const {
  return layers * (attention_parameters() + mlp_parameters()) + head_parameters() * (tied ? 1 : 2);
}

std::int64_t ModelDescription::kv_bytes_per_position() const {
  return std::int64_t{2} * layers * kv_heads * head_size * kv_bytes;
}

std::vector<std::string> ModelDescription::problems() const {
  std::vector<std::string> list;
  if (heads % kv_heads != 0)
    list.push_back("Model/Heads is " + std::to_string(heads) +
                   " (a KV head serves as many query heads as any other); make it a multiple of "
                   "Model/KV Heads, which is " +
                   std::to_string(kv_heads));
  return list;
}

}  // namespace taper
