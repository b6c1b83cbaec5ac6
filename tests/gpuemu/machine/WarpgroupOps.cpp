// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by warpgroups (wgmma) with both operands in shared memory, permuted in lines of
// 128 bytes. A warp computes its own 16 of the 64 rows when it starts a product; until it has
// waited, what the product reads must not change, and what threads have put there must have been
// released to it.
#include <cstring>

#include "gpuemu/machine/Lanes.hpp"
#include "kernels/canonical/tensor_core.hpp"

namespace taper::gpuemu {
namespace {

constexpr int kDepth = 16;  // inputs

// An operand as its descriptor has it (PTX ISA, Matrix Descriptor Format).
class Tile {
 public:
  Tile(Warp& w, const Operand& descriptor, const Operand& is_transposed)
      : warp_(w), has_input_lines_(w.value(is_transposed, 0) != 0) {
    const std::uint64_t d = w.value(descriptor, 0);
    if (d >> 62 != 1 || (d >> 49 & 7) != 0)
      w.fail("operands of wgmma in other forms than lines of 128 bytes are not supported");
    start_ =
        static_cast<std::uint32_t>(d & 0x3fff) << 4 | static_cast<std::uint32_t>(kDynamicShared);
    leading_ = static_cast<std::uint32_t>(d >> 16 & 0x3fff) << 4;
    stride_ = static_cast<std::uint32_t>(d >> 32 & 0x3fff) << 4;
  }

  // The inputs of rows, or columns, [first, first + n).
  std::vector<std::array<bf16, kDepth>> read(int first, int n) {
    std::vector<std::array<bf16, kDepth>> values(static_cast<std::size_t>(n));
    bf16 chunk[8];
    if (has_input_lines_) {
      for (int k = 0; k < kDepth; ++k)
        for (int i = 0; i < n; i += 8) {
          const int at = first + i;
          read_chunk(at / 64 * leading_ + k / 8 * stride_ + k % 8 * 128 + at % 64 * 2, k, chunk);
          for (int j = 0; j < 8; ++j) values[static_cast<std::size_t>(i + j)][k] = chunk[j];
        }
    } else {
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < kDepth; k += 8) {
          const int at = first + i;
          read_chunk(at / 8 * stride_ + at % 8 * 128 + k * 2, i % kLanes, chunk);
          for (int j = 0; j < 8; ++j) values[static_cast<std::size_t>(i)][k + j] = chunk[j];
        }
    }
    return values;
  }

 private:
  void read_chunk(std::uint32_t at, int lane, bf16* chunk) {
    std::uint32_t offset = start_ + at;
    offset ^= (offset >> 7 & 7) << 4;
    const std::uint8_t* from = warp_.shared(offset, lane, 16, Access::kRead);
    warp_.block().require_release(warp_, lane, offset, 16);
    warp_.products.reads(offset, lane, from);
    std::memcpy(chunk, from, 16);
  }

  Warp& warp_;
  bool has_input_lines_;
  std::uint32_t start_, leading_, stride_;
};

// `wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 d, a, b, adds, 1, 1, trans-a, trans-b`
void multiply(Warp& w, const Instruction& i) {
  const auto& o = i.operands;
  if (w.value(o[4], 0) != 1 || w.value(o[5], 0) != 1) w.fail("wgmma with signs is not supported");
  const bool adds = w.value(o[3], 0) != 0;
  const int row0 = w.index() % 4 * 16;
  const auto rows = Tile(w, o[1], o[6]).read(row0, 16);
  const auto columns = Tile(w, o[2], o[7]).read(0, i.count);
  const auto core = canonical::tensor_core(w.block().machine.architecture);
  for (int l = 0; l < kLanes; ++l)
    for (int r = 0; r < i.count / 2; ++r) {
      const auto row = static_cast<std::size_t>(l / 4 + r / 2 % 2 * 8),
                 column = static_cast<std::size_t>(r / 4 * 8 + l % 4 * 2 + r % 2);
      const Operand& sum = o[0].parts.at(static_cast<std::size_t>(r));
      const float c =
          adds ? std::bit_cast<float>(static_cast<std::uint32_t>(w.value(sum, l))) : 0.0f;
      w.set(sum, l,
            std::bit_cast<std::uint32_t>(canonical::tensor_chain(
                rows[row].data(), columns[column].data(), kDepth, c, core)));
    }
  ++w.block().machine.statistics.products;
}

}  // namespace

void AsyncProducts::reads(std::uint32_t offset, int lane, const std::uint8_t* bytes) {
  Read read{offset, lane, committed_, {}};
  std::memcpy(read.bytes.data(), bytes, read.bytes.size());
  pending_.push_back(read);
}

void AsyncProducts::wait(Warp& warp, std::uint32_t keep) {
  const std::uint32_t done = committed_ > keep ? committed_ - keep : 0;
  while (!pending_.empty() && pending_.front().group < done) {
    const Read& read = pending_.front();
    const std::uint8_t* now = warp.shared(read.offset, read.lane, 16, Access::kRead);
    if (std::memcmp(now, read.bytes.data(), read.bytes.size()) != 0)
      warp.fail("memory was changed while a product that reads it was pending", read.lane);
    pending_.pop_front();
  }
}

bool decode_warpgroup(Instruction& i) {
  if (i.opcode[0] == "fence" && i.has("proxy") && i.has("async")) {
    i.handler = [](Warp& w, const Instruction&) { w.release_to_async(); };
    return true;
  }
  if (i.opcode[0] != "wgmma") return false;
  if (i.has("fence")) {
    i.handler = [](Warp&, const Instruction&) {};  // products of a warp follow one another
  } else if (i.has("commit_group")) {
    i.handler = [](Warp& w, const Instruction&) { w.products.commit(); };
  } else if (i.has("wait_group")) {
    i.handler = [](Warp& w, const Instruction& in) {
      w.products.wait(w, static_cast<std::uint32_t>(w.value(in.operands[0], 0)));
    };
  } else {
    for (const std::string& word : i.opcode) {
      if (word.rfind("m64n", 0) == 0) i.count = std::atoi(word.c_str() + 4);
    }
    if (!i.has("mma_async") || !i.has("bf16") || !i.has("f32") || i.operands.size() != 8 ||
        i.operands[1].kind == Operand::Kind::kVector)
      throw Fault("product of a warpgroup is not supported: " + i.text);
    i.handler = multiply;
  }
  i.flow = Flow::kMeet;
  i.members = -1;
  return true;
}

}  // namespace taper::gpuemu
