// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by tensor cores (mma), and loads of their operands (ldmatrix). Fragments are
// those of the PTX documentation: with g = lane / 4 and t = lane % 4, lane l holds of an 8x8 tile
// the elements (g, 2t) and (g, 2t + 1).
#include <cstring>

#include "gpuemu/machine/Lanes.hpp"
#include "kernels/canonical/tensor_core.hpp"

namespace taper::gpuemu {
namespace {

const Operand& part(const Operand& o, std::size_t k) {
  return o.kind == Operand::Kind::kVector ? o.parts[k] : o;
}

// `mma.sync.aligned.m16n8kK.row.col.f32.bf16.bf16.f32 d, a, b, c` with K = 8 or 16.
template <int K>
void multiply(Warp& w, const Instruction& i) {
  bf16 a[16][K], b[8][K];  // b by columns
  float c[16][8];
  for (int l = 0; l < kLanes; ++l) {
    const int g = l / 4, t = l % 4;
    for (int r = 0; r < K / 4; ++r) {  // registers of a: rows g and g + 8, then the next 8 columns
      const auto pair =
          static_cast<std::uint32_t>(w.value(part(i.operands[1], static_cast<std::size_t>(r)), l));
      for (int h = 0; h < 2; ++h)
        a[g + r % 2 * 8][2 * t + h + r / 2 * 8].bits = static_cast<std::uint16_t>(pair >> 16 * h);
    }
    for (int r = 0; r < K / 8; ++r) {
      const auto pair =
          static_cast<std::uint32_t>(w.value(part(i.operands[2], static_cast<std::size_t>(r)), l));
      for (int h = 0; h < 2; ++h)
        b[g][2 * t + h + r * 8].bits = static_cast<std::uint16_t>(pair >> 16 * h);
    }
    for (int r = 0; r < 4; ++r) {
      c[g + r / 2 * 8][2 * t + r % 2] = std::bit_cast<float>(
          static_cast<std::uint32_t>(w.value(part(i.operands[3], static_cast<std::size_t>(r)), l)));
    }
  }
  const auto core = canonical::tensor_core(w.block().machine.architecture);
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n) c[r][n] = canonical::tensor_chain(a[r], b[n], K, c[r][n], core);
  }
  for (int l = 0; l < kLanes; ++l) {
    const int g = l / 4, t = l % 4;
    for (int r = 0; r < 4; ++r) {
      w.set(part(i.operands[0], static_cast<std::size_t>(r)), l,
            std::bit_cast<std::uint32_t>(c[g + r / 2 * 8][2 * t + r % 2]));
    }
  }
  ++w.block().machine.statistics.products;
}

// Rows of 16 bytes come from the addresses of lanes 8k to 8k + 7, for tile k.
void load_tiles(Warp& w, const Instruction& i) {
  for (int k = 0; k < i.count; ++k) {
    const std::uint8_t* rows[8];
    for (int r = 0; r < 8; ++r) rows[r] = w.address(i, i.operands[1], 8 * k + r, 16, Access::kRead);
    for (int l = 0; l < kLanes; ++l) {
      const int g = l / 4, t = l % 4;
      std::uint32_t pair = 0;
      if (i.has("trans")) {
        std::uint16_t low = 0, high = 0;
        std::memcpy(&low, rows[2 * t] + 2 * g, 2);
        std::memcpy(&high, rows[2 * t + 1] + 2 * g, 2);
        pair = low | std::uint32_t{high} << 16;
      } else {
        std::memcpy(&pair, rows[g] + 4 * t, 4);
      }
      w.set(part(i.operands[0], static_cast<std::size_t>(k)), l, pair);
    }
  }
}

}  // namespace

bool decode_tensor(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "mma") {
    if (!i.has("bf16") || !i.has("f32") || !(i.has("m16n8k16") || i.has("m16n8k8"))) {
      throw Fault("product of tiles is not supported: " + i.text);
    }
    i.handler = i.has("m16n8k16") ? multiply<16> : multiply<8>;
  } else if (op == "ldmatrix") {
    if (!i.has("m8n8") || !i.has("b16")) throw Fault("load of tiles is not supported: " + i.text);
    i.count = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
    i.space = Space::kShared;
    i.handler = load_tiles;
  } else {
    return false;
  }
  i.flow = Flow::kMeet;
  i.members = -1;
  return true;
}

}  // namespace taper::gpuemu
