// SPDX-License-Identifier: Apache-2.0
//
// What is one launch on a device has the bits of the calls that it stands for.
#include "kernels/fused.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#include "kernels/norm.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/rope.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;
using namespace taper::test;

namespace {

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// What this build can compute in.
std::vector<Exec> arithmetics() {
  std::vector<Exec> list(1);
#if defined(TAPER_CUDA)
  list.emplace_back().arithmetic = Arithmetic::kBf16;
  static Staged<float> memory(1 << 16);
  list.push_back(list.back());  // with memory for rounded activations of many rows
  list.back().rounding = {memory.data(), 4 * std::ssize(memory)};
#endif
  return list;
}

constexpr int kRows[] = {1, 9, 20, 70, 140};

}  // namespace

TEST_CASE("two products of the same inputs") {
  flush_denormals();
  for (const Exec& exec : arithmetics())
    for (const int rows : kRows) {
      const int k = 100, n1 = 192, n2 = 128;
      const Floats x = random_floats(std::int64_t{rows} * k, 1), bias = random_floats(n1, 2);
      const PackedWeights w1 = pack(random_floats(std::int64_t{n1} * k, 3), n1, k,
                                    WeightType::kBf16, PackOrder::kRowsAreColumns),
                          w2 = pack(random_floats(std::int64_t{n2} * k, 4), n2, k,
                                    WeightType::kBf16, PackOrder::kRowsAreColumns);
      Floats y1(static_cast<std::size_t>(rows) * n1, NAN),
          e1 = y1, y2(static_cast<std::size_t>(rows) * n2, NAN), e2 = y2;
      multiply_both<Exec>(exec, {view(y1, rows, n1), w1.matrix, const_view(bias)},
                          {view(y2, rows, n2), w2.matrix, {}}, const_view(x, rows, k));
      multiply(exec, view(e1, rows, n1), const_view(x, rows, k), w1.matrix, const_view(bias));
      multiply(exec, view(e2, rows, n2), const_view(x, rows, k), w2.matrix);
      exec.fence();
      INFO(rows << " rows");
      CHECK(same_bits(y1, e1));
      CHECK(same_bits(y2, e2));
    }
}

TEST_CASE("a product and its SwiGLU") {
  flush_denormals();
  for (const Exec& exec : arithmetics())
    for (const auto& [rows, n] :
         {std::pair{1, 128}, {9, 128}, {20, 128}, {70, 128}, {140, 128}, {40, 192 * 64}}) {
      const int k = n == 128 ? 72 : 16;  // wide blocks have many columns
      const Floats x = random_floats(std::int64_t{rows} * k, 1, -4, 4);
      const PackedWeights w = pack(random_floats(std::int64_t{2 * n} * k, 3, -2, 2), 2 * n, k,
                                   WeightType::kBf16, PackOrder::kRowsAreColumns);
      Floats y(static_cast<std::size_t>(rows) * n, NAN), expected = y, gate_up(2 * y.size(), NAN),
                                                         expected_gate_up = gate_up;
      multiply_swiglu(exec, view(y, rows, n), view(gate_up, rows, 2 * n), const_view(x, rows, k),
                      w.matrix);
      multiply(exec, view(expected_gate_up, rows, 2 * n), const_view(x, rows, k), w.matrix);
      swiglu(exec, view(expected, rows, n), const_view(expected_gate_up, rows, 2 * n));
      exec.fence();
      INFO(rows << " rows");
      CHECK(same_bits(gate_up, expected_gate_up));
      CHECK(same_bits(y, expected));
    }
}

TEST_CASE("a product with leaves and the residual, in place too") {
  flush_denormals();
  for (const Exec& exec : arithmetics())
    for (const int rows : kRows) {
      const int units = 5, stride = 64, size = 48, k = units * stride, n = 128;
      const Staged<int> program = staged(ReductionTree(units, 1).local_program({0, units}));
      const LeafOrder leaves{units, stride, size, size, program.data(), 1};
      const Floats x = random_floats(std::int64_t{rows} * k, 1),
                   residual = random_floats(std::int64_t{rows} * n, 2);
      const PackedWeights w = pack(random_floats(std::int64_t{n} * k, 3), n, k, WeightType::kBf16,
                                   PackOrder::kRowsAreColumns);
      Floats y(residual.size(), NAN), in_place = residual, expected(residual.size(), NAN),
                                      scratch(residual.size(), NAN);
      multiply_leaves_and_add(exec, view(y, rows, n), const_view(residual, rows, n),
                              const_view(x, rows, k), w.matrix, leaves, scratch.data());
      multiply_leaves_and_add(exec, view(in_place, rows, n), const_view(in_place, rows, n),
                              const_view(x, rows, k), w.matrix, leaves, scratch.data());
      multiply_leaves(exec, view(expected, rows, n), const_view(x, rows, k), w.matrix, leaves);
      add(exec, view(expected), const_view(residual), const_view(expected));
      exec.fence();
      INFO(rows << " rows");
      CHECK(same_bits(y, expected));
      CHECK(same_bits(in_place, expected));
    }
}

TEST_CASE("norms of query and key heads") {
  flush_denormals();
  const Exec exec;
  for (const int d : {64, 48, 128}) {
    const int rows = 3, pad = round_up(d, 64);
    const AttentionShape shape{6, 2, 3, 0, d, pad};
    const float eps = 1e-6f;
    const Floats q = random_floats(std::int64_t{rows} * 6 * pad, 1),
                 kv = random_floats(std::int64_t{rows} * 4 * pad, 2), q_gain = random_floats(d, 3),
                 k_gain = random_floats(d, 4);
    Floats qy(q.size(), 0.5f), q_inv(rows * 6, NAN), kvy(kv.size(), NAN), k_inv(rows * 2, NAN);
    Floats expected_q = qy, expected_q_inv = q_inv, expected_kv = kvy, expected_k_inv = k_inv;
    norm_heads<Exec>(exec, {view(qy), view(q_inv), const_view(q), const_view(q_gain)},
                     {view(kvy), view(k_inv), const_view(kv), const_view(k_gain)}, shape, eps);
    rmsnorm(exec, view(expected_q), view(expected_q_inv), const_view(q), const_view(q_gain),
            {d, pad, eps});
    copy(exec, view(expected_kv), const_view(kv));
    rmsnorm(exec, view(expected_kv), view(expected_k_inv), const_view(kv), const_view(k_gain),
            {d, 2 * pad, eps});
    exec.fence();
    INFO("heads of " << d);
    CHECK(same_bits(qy, expected_q));
    CHECK(same_bits(q_inv, expected_q_inv));
    CHECK(same_bits(kvy, expected_kv));
    CHECK(same_bits(k_inv, expected_k_inv));
  }
}

TEST_CASE("queries and keys are rotated, keys and values written to pages") {
  flush_denormals();
  for (const Exec& exec : arithmetics())
    for (const int d : {64, 20, 128}) {
      const int pad = round_up(d, 64), heads = 4, kv_heads = 2, positions = 200;
      const AttentionShape shape{heads, kv_heads, 2, 0, d, pad};
      // Two sequences, and a row that only fills up.
      const Staged<std::int32_t> blocks = staged(std::vector<std::int32_t>{3, 0, 2, 1});
      const Staged<AttentionSegment> segments = staged(std::vector<AttentionSegment>{
          {blocks.data(), 62, 5, 0}, {blocks.data() + 2, 0, 1, 5}, {nullptr, 0, 0, 6}});
      const Staged<std::int32_t> at = staged(std::vector<std::int32_t>{62, 63, 64, 65, 66, 0, 0});
      const int rows = static_cast<int>(at.size());
      const Floats table = random_floats(std::int64_t{positions} * d, 1);
      Floats q = random_floats(std::int64_t{rows} * heads * pad, 2),
             kv = random_floats(std::int64_t{rows} * kv_heads * 2 * pad, 3);
      // The last row may be rotated or not.
      const auto whole = [&](Floats v) {
        v.resize(v.size() / rows * (rows - 1));
        return v;
      };
      const KvType type = kv_type(exec);
      Floats pool(static_cast<std::size_t>(4 * kv_heads * page_floats(d, type)), 0.0f);
      Floats expected_q = q, expected_kv = kv, expected_pool = pool;
      const auto pages = [&](Floats& memory) {
        return make_pages(memory.data(), kv_heads, d, type);
      };
      rotate_and_write(exec, view(q, rows, heads * pad), view(kv, rows, kv_heads * 2 * pad),
                       const_view(at), const_view(table, positions, d), pages(pool),
                       const_view(segments), shape);
      rope(exec, view(expected_q, rows, heads * pad), const_view(at),
           const_view(table, positions, d), {heads, pad, d}, RopeDirection::kForward);
      rope(exec, view(expected_kv, rows, kv_heads * 2 * pad), const_view(at),
           const_view(table, positions, d), {kv_heads, 2 * pad, d}, RopeDirection::kForward);
      write_pages(exec, pages(expected_pool), const_view(expected_kv, rows, kv_heads * 2 * pad),
                  const_view(segments), shape);
      exec.fence();
      INFO("heads of " << d);
      CHECK(same_bits(whole(q), whole(expected_q)));
      CHECK(same_bits(whole(kv), whole(expected_kv)));
      CHECK(same_bits(pool, expected_pool));
    }
}
