// SPDX-License-Identifier: Apache-2.0
//
// Machines and models that are described by figures instead of measured: what a latency profile is
// made of (Roofline.hpp) if there is no machine to measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// One rank's device. Efficiencies are shares of the peak that kernels reach.
struct DeviceDescription {
  double tflops = 989;  // dense products in the type of the weights, 1e12 per second
  double product_efficiency = 0.6;
  double memory_gb_s = 3350;  // 1e9 bytes per second
  double memory_efficiency = 0.8;
  double memory_gb = 80;       // 1e9 bytes
  double memory_share = 0.8;   // of it for weights and the KV cache
  double step_us = 300;        // of a step, beside its layers: launch, sampling, scheduling
  double layer_us = 12;        // of a layer: launches and small kernels
  double sequence_us = 0;      // of each sequence of a step on the host, which nothing hides
  double sampling_bytes = 24;  // read and written per vocabulary entry and sequence, on each rank
};

enum class AllReduceForm {
  kRing,  // 2 (n - 1) hops
  kTree,  // 2 log2(n) hops
};

// How ranks of one node, or of different nodes, exchange. An all-reduce takes a base, its hops and
// twice the data (less the own share) at the bandwidth of a rank.
struct LinkDescription {
  double base_us = 6.6;
  double hop_us = 0.6;
  double gb_s = 200;  // of a rank, one direction, as all-reduces reach it
  AllReduceForm form = AllReduceForm::kRing;
};

struct MachineDescription {
  std::string name = "8 x H100 SXM";
  int ranks = 8;
  int ranks_per_node = 8;
  DeviceDescription device;
  LinkDescription inside;                                       // a node
  LinkDescription between{6.6, 5.0, 40, AllReduceForm::kTree};  // nodes

  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  std::vector<std::string> problems() const;
};

// A dense transformer with gated MLP and grouped-query attention.
struct ModelDescription {
  std::string name = "Llama-3.1-8B";
  int layers = 32;
  int hidden = 4096;
  int heads = 32;
  int kv_heads = 8;
  int head_size = 128;
  int mlp = 14336;
  int vocabulary = 128256;
  bool tied = false;  // embedding and output head are one tensor
  int weight_bytes = 2;
  int kv_bytes = 2;

  double attention_parameters() const;  // of a layer
  double mlp_parameters() const;        // of a layer
  double head_parameters() const;       // of the output head
  double parameters() const;            // of all
  std::int64_t kv_bytes_per_position() const;
  std::vector<std::string> problems() const;
};

}  // namespace taper
