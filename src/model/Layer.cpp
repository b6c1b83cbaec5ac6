// SPDX-License-Identifier: Apache-2.0
#include "model/Layer.hpp"

#include <algorithm>

#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#include "kernels/fused.hpp"
#include "kernels/norm.hpp"
#include "kernels/product.hpp"

namespace taper {
namespace {

// out = x + (the row-parallel product of `input`, summed over the group in tree order). Collective
// over the tensor-parallel group.
void project_and_add(const LayerContext& c, const PackedMatrix& weights,
                     const ModelParallel::RowParallel& by, FloatMatrix out, ConstFloatMatrix x,
                     ConstFloatMatrix input) {
  const FloatMatrix total = room_for_product(c, by, input.extent_int(0));
  c.parallel.multiply_and_add(c.exec, weights, by, out, x, input, c.partials, total,
                              total.data() + total.size());
}

void norm_heads(const LayerContext& c, const LayerWeights& w, const LayerActivations& a) {
  const int rows = c.batch.rows();
  taper::norm_heads(
      c.exec, {flat(a.query(rows)), a.query_inv(rows), flat(a.query_raw(rows)), w.query_norm},
      {flat(a.key_value(rows)), a.key_inv(rows), flat(a.key_value_raw(rows)), w.key_norm},
      c.shape.attention, c.config.norm_eps);
}

}  // namespace

std::int64_t layer_scratch_floats(const ModelParallel& parallel, int hidden, int rows) {
  const std::int64_t one = static_cast<std::int64_t>(rows) * hidden;
  const auto need = [&](const ModelParallel::RowParallel& by) {
    return (by.leaves.partials + 1) * one +
           static_cast<std::int64_t>(by.sum.workspace_floats(rows, hidden));
  };
  return std::max({need(parallel.attention()), need(parallel.mlp()),
                   need(parallel.key_value_input()), need(parallel.gate_up_input())});
}

FloatMatrix room_for_product(const LayerContext& c, const ModelParallel::RowParallel& by,
                             int rows) {
  const int h = c.config.hidden;
  return make_matrix(c.partials + std::int64_t{by.leaves.partials} * rows * h, rows, h);
}

void project(const LayerContext& c, const PackedMatrix& weights,
             const ModelParallel::RowParallel& by, FloatMatrix out, ConstFloatMatrix input) {
  const FloatMatrix result = room_for_product(c, by, out.extent_int(0));
  c.parallel.multiply(c.exec, weights, by, out, input, c.partials, result.data() + result.size());
}

void write_shared_prefixes(const LayerContext& c, const LayerPages& pages,
                           const LayerActivations& a) {
  if (c.batch.shared.segments.size() == 0) return;
  write_pages(c.exec, pages, ConstFloatMatrix(a.key_value(c.batch.rows())), c.batch.shared.segments,
              c.shape.attention);
}

void attend(const LayerContext& c, const LayerWeights& w, const LayerPages& pages,
            const LayerActivations& a, FloatMatrix out, ConstFloatMatrix residual,
            ConstFloatMatrix x) {
  const int rows = c.batch.rows(), pad = c.shape.attention.head_pad, d = c.config.head_dim;
  const NormShape norm{c.config.hidden, c.config.hidden, c.config.norm_eps};
  rmsnorm(c.exec, flat(a.normed1(rows)), a.inv1(rows), flat(x), w.input_norm, norm);
  multiply_both<Exec>(c.exec, {a.query_raw(rows), w.query, w.query_bias},
                      {a.key_value_raw(rows), w.key_value, w.key_value_bias}, a.normed1(rows));
  if (c.shape.qk_norm) norm_heads(c, w, a);
  rotate_and_write(c.exec, a.query(rows), a.key_value(rows), c.batch.positions, c.rope_table, pages,
                   c.batch.segments, c.shape.attention);
  write_shared_prefixes(c, pages, a);
  // Padding columns of a head stay zero: they meet zero weights forward, but would count in weight
  // gradients.
  if (pad != d) fill(c.exec, flat(a.attended(rows)), 0.0f);
  attention(c.exec, a.attended(rows), a.stats(rows), a.query(rows), pages, c.batch.segments,
            c.shape.attention);
  project_and_add(c, w.output, c.parallel.attention(), out, residual, a.attended(rows));
}

void apply_mlp(const LayerContext& c, const LayerWeights& w, const LayerActivations& a,
               FloatMatrix out, ConstFloatMatrix x) {
  const int rows = c.batch.rows();
  const NormShape norm{c.config.hidden, c.config.hidden, c.config.norm_eps};
  rmsnorm(c.exec, flat(a.normed2(rows)), a.inv2(rows), flat(x), w.post_norm, norm);
  multiply_swiglu(c.exec, a.act(rows), a.gate_up(rows), a.normed2(rows), w.gate_up);
  project_and_add(c, w.down, c.parallel.mlp(), out, x, a.act(rows));
}

void forward_layer(const LayerContext& c, const LayerWeights& w, const LayerPages& pages,
                   const LayerActivations& a, FloatMatrix out, ConstFloatMatrix x) {
  const FloatMatrix mid = a.mid(c.batch.rows());
  attend(c, w, pages, a, mid, x, x);
  apply_mlp(c, w, a, out, mid);
}

}  // namespace taper
