// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#include "kernels/norm.hpp"
#include "kernels/product.hpp"
#include "kernels/rope.hpp"
#include "model/Layer.hpp"

namespace taper {
namespace {

FloatMatrix resize(FloatMatrix m, int rows, int columns) {
  return make_matrix(m.data(), rows, columns);
}

// Collective over the tensor-parallel group, as is backward_attention().
void backward_mlp(const LayerContext& c, const LayerWeights& w, const LayerActivations& a,
                  const LayerGradients& g, const BackwardScratch& s, FloatMatrix dx) {
  const int rows = c.batch.rows(), h = c.config.hidden;
  const NormShape norm{h, h, c.config.norm_eps};
  const auto d_act = resize(s.act, rows, c.shape.mlp),
             d_gate_up = resize(s.wide, rows, 2 * c.shape.mlp);
  const auto d_normed = resize(s.hidden, rows, h);
  multiply(c.exec, d_act, dx, w.down_t);
  accumulate_outer(c.exec, g.down, a.act(rows), dx);
  swiglu_backward(c.exec, d_gate_up, d_act, a.gate_up(rows));
  accumulate_outer(c.exec, g.gate_up, d_gate_up, a.normed2(rows));
  project(c, w.gate_up_t, c.parallel.gate_up_input(), d_normed, d_gate_up);
  rmsnorm_backward(c.exec, flat(dx), g.post_norm, flat(d_normed), flat(a.mid(rows)), a.inv2(rows),
                   w.post_norm, norm, Accumulate::kYes);
}

void backward_head_norms(const LayerContext& c, const LayerWeights& w, const LayerActivations& a,
                         const LayerGradients& g, FloatMatrix d_query, FloatMatrix d_key_value) {
  const int rows = c.batch.rows(), pad = c.shape.attention.head_pad, d = c.config.head_dim;
  rmsnorm_backward(c.exec, flat(d_query), g.query_norm, flat(d_query), flat(a.query_raw(rows)),
                   a.query_inv(rows), w.query_norm, {d, pad, c.config.norm_eps, c.shape.heads},
                   Accumulate::kNo);
  rmsnorm_backward(c.exec, flat(d_key_value), g.key_norm, flat(d_key_value),
                   flat(a.key_value_raw(rows)), a.key_inv(rows), w.key_norm,
                   {d, 2 * pad, c.config.norm_eps, c.shape.kv_heads}, Accumulate::kNo);
}

void backward_attention(const LayerContext& c, const LayerWeights& w, const LayerPages& pages,
                        const LayerActivations& a, const LayerGradients& g,
                        const BackwardScratch& s, FloatMatrix dx, ConstFloatMatrix x) {
  const int rows = c.batch.rows(), h = c.config.hidden, pad = c.shape.attention.head_pad,
            d = c.config.head_dim;
  const NormShape norm{h, h, c.config.norm_eps};
  const auto d_attended = resize(s.wide, rows, c.shape.query),
             d_query = resize(s.act, rows, c.shape.query);
  const auto d_key_value = resize(s.key_value, rows, c.shape.key_value),
             d_normed = resize(s.hidden, rows, h);
  multiply(c.exec, d_attended, dx, w.output_t);
  accumulate_outer(c.exec, g.output, a.attended(rows), dx);
  write_pages(c.exec, pages, ConstFloatMatrix(a.key_value(rows)), c.batch.segments,
              c.shape.attention);
  write_shared_prefixes(c, pages, a);
  const auto& all_rows = c.batch.shared.rows;
  const auto of_all = all_rows.size() == 0
                          ? d_key_value
                          : resize(s.of_all, static_cast<int>(all_rows.size()), c.shape.key_value);
  attention_backward(c.exec, d_query, of_all, d_attended, a.attended(rows), a.stats(rows),
                     a.query(rows), pages, c.batch.segments, c.shape.attention);
  if (all_rows.size() > 0) {
    fill(c.exec, flat(d_key_value), 0.0f);
    add_rows(c.exec, d_key_value, ConstFloatMatrix(of_all), all_rows);
  }
  rope(c.exec, d_query, c.batch.positions, c.rope_table, {c.shape.heads, pad, d},
       RopeDirection::kBackward);
  rope(c.exec, d_key_value, c.batch.positions, c.rope_table, {c.shape.kv_heads, 2 * pad, d},
       RopeDirection::kBackward);
  if (c.shape.qk_norm) backward_head_norms(c, w, a, g, d_query, d_key_value);
  if (g.query_bias.data != nullptr) {
    accumulate_bias(c.exec, g.query_bias, ConstFloatMatrix(d_query));
    accumulate_bias(c.exec, g.key_value_bias, ConstFloatMatrix(d_key_value));
  }
  accumulate_outer(c.exec, g.query, d_query, a.normed1(rows));
  accumulate_outer(c.exec, g.key_value, d_key_value, a.normed1(rows));
  const auto& by_kv_heads = c.parallel.key_value_input();
  const FloatMatrix more = room_for_product(c, by_kv_heads, rows);
  project(c, w.query_t, c.parallel.attention(), d_normed, d_query);
  project(c, w.key_value_t, by_kv_heads, more, d_key_value);
  add(c.exec, flat(d_normed), flat(d_normed), flat(more));
  rmsnorm_backward(c.exec, flat(dx), g.input_norm, flat(d_normed), flat(x), a.inv1(rows),
                   w.input_norm, norm, Accumulate::kYes);
}

}  // namespace

std::int64_t BackwardScratch::floats(const ActivationShape& shape, int rows, bool shares_prefixes) {
  return static_cast<std::int64_t>(rows) *
         (std::max(2 * shape.mlp, shape.query) + std::max(shape.mlp, shape.query) +
          (shares_prefixes ? 2 : 1) * shape.key_value + shape.hidden);
}

BackwardScratch::BackwardScratch(const ActivationShape& shape, int rows, bool shares_prefixes,
                                 float* memory) {
  const auto take = [&](int columns) {
    FloatMatrix m(memory, rows, columns);
    memory += static_cast<std::int64_t>(rows) * columns;
    return m;
  };
  wide = take(std::max(2 * shape.mlp, shape.query));
  act = take(std::max(shape.mlp, shape.query));
  key_value = take(shape.key_value);
  hidden = take(shape.hidden);
  if (shares_prefixes) of_all = take(shape.key_value);
}

void backward_layer(const LayerContext& c, const LayerWeights& w, const LayerPages& pages,
                    const LayerActivations& a, const LayerGradients& g, const BackwardScratch& s,
                    FloatMatrix dx, ConstFloatMatrix x) {
  backward_mlp(c, w, a, g, s, dx);
  backward_attention(c, w, pages, a, g, s, dx, x);
}

}  // namespace taper
