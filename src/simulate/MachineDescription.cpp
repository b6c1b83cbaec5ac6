// SPDX-License-Identifier: Apache-2.0
#include "simulate/MachineDescription.hpp"

namespace taper {
namespace {

void need_positive(int value, const char* path, std::vector<std::string>& list) {
  if (value < 1)
    list.push_back(std::string(path) + " is " + std::to_string(value) + " (must be positive)");
}

}  // namespace

std::vector<std::string> MachineDescription::problems() const {
  std::vector<std::string> list;
  need_positive(ranks, "Machine/Ranks", list);
  need_positive(ranks_per_node, "Machine/Ranks Per Node", list);
  if (list.empty() && ranks % ranks_per_node != 0 && ranks > ranks_per_node)
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
  need_positive(layers, "Model/Layers", list);
  need_positive(hidden, "Model/Hidden", list);
  need_positive(heads, "Model/Heads", list);
  need_positive(kv_heads, "Model/KV Heads", list);
  need_positive(head_size, "Model/Head Size", list);
  need_positive(mlp, "Model/MLP", list);
  need_positive(vocabulary, "Model/Vocabulary", list);
  need_positive(weight_bytes, "Model/Weight Bytes", list);
  need_positive(kv_bytes, "Model/KV Bytes", list);
  if (list.empty() && heads % kv_heads != 0)
    list.push_back("Model/Heads is " + std::to_string(heads) +
                   " (a KV head serves as many query heads as any other); make it a multiple of "
                   "Model/KV Heads, which is " +
                   std::to_string(kv_heads));
  return list;
}

}  // namespace taper
