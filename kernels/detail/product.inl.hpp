// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/Bf16.hpp"
#include "kernels/detail/Product.hpp"

namespace taper::detail {

// Lines of the weights that will be needed next, asked for a few at each step while others are
// multiplied: memory would else rest while rows beyond the first ones are computed from caches, and
// many lines at once would wait for one another.
class Ahead {
 public:
  // `bytes` from `next` on, in so many calls of fetch(); none if there is nothing to multiply.
  Ahead(const void* next, std::int64_t bytes, std::int64_t calls)
      : next_(static_cast<const char*>(next)),
        end_(next_ + bytes),
        rate_(static_cast<int>((bytes / kLine * kOne + calls - 1) / (calls > 0 ? calls : 1))) {}

  void fetch() {
    for (due_ += rate_; due_ >= kOne && next_ < end_; due_ -= kOne, next_ += kLine)
      __builtin_prefetch(next_);
  }

 private:
  static constexpr int kLine = 64;
  static constexpr int kOne = 256;  // line, in units of rate_ and due_

  const char *next_, *end_;
  int rate_, due_ = 0;  // lines per call
};

// Chains of R rows x N vectors of columns over n steps of k: inputs, or pairs of them. `w` points
// at the first column. Asks for what comes next.
template <class S, int R, int N, class A, class W, class... Next>
inline void extend_chains(const A* a, std::int64_t a_row, std::int64_t a_k, const W* w, int n,
                          typename S::V (&acc)[R][N], Next&... ahead) {
  for (int k = 0; k < n; ++k) {
    (ahead.fetch(), ...);
    decltype(S::load(w)) column[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) column[j] = S::load(w + k * kPanel + 16 * j);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto x = S::set1(a[r * a_row + k * a_k]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = S::fma(x, column[j], acc[r][j]);
    }
  }
}

// The valid lanes of vector j of a strip that starts at `column`.
static inline int valid_lanes(const ProductArgs& args, int column) {
  const int n = args.columns - column;
  return n < 0 ? 0 : (n > 16 ? 16 : n);
}

// Extends the chains of R rows over n steps of k. They wait in `top`, rows 64 apart; when a leaf
// is whole, `merges` lower sums are added to it, `level` floats apart each, and the result stands
// where the last of them stood.
template <class S, int R, int N, class A, class W, class... Next>
inline void extend_block(const A* a, std::int64_t a_row, std::int64_t a_k, const W* w, int n,
                         bool fresh, float* top, int merges, std::int64_t level, Next&... ahead) {
  typename S::V acc[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = fresh ? S::zero() : S::load(top + r * kPanel + 16 * j);
  extend_chains<S, R, N>(a, a_row, a_k, w, n, acc, ahead...);
  for (; merges > 0; --merges) {
    top -= level;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = S::add(S::load(top + r * kPanel + 16 * j), acc[r][j]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(top + r * kPanel + 16 * j, acc[r][j]);
}

// Calls f.template operator()<R>(row) for blocks of at most `most` rows, the largest first.
template <int most, class F>
inline void for_row_blocks(int rows, const F& f) {
  int row = 0;
  if constexpr (most >= 6) {
    for (; row + 6 <= rows; row += 6) f.template operator()<6>(row);
    for (; row + 4 <= rows; row += 4) f.template operator()<4>(row);
  }
  if constexpr (most >= 3)
    for (; row + 3 <= rows; row += 3) f.template operator()<3>(row);
  for (; row + 2 <= rows; row += 2) f.template operator()<2>(row);
  for (; row < rows; ++row) f.template operator()<1>(row);
}

// Vectors of columns that a block of R rows has in registers, where many rows have `least`: few
// rows leave room for more, and need more for as many chains at once as the processor's latency
// asks for.
template <int least, int R>
constexpr int block_vectors() {
  constexpr int kChains = 6;
  int vectors = least;
  while (vectors < kPanel / 16 && R * vectors * 2 <= kChains) vectors *= 2;
  return vectors;
}

// Values of k that all rows of a task share before the next ones are read: packed weights stay in
// the second-level cache meanwhile (widening them in registers costs less than a widened copy);
// rows of plain matrices are copied into strips in the first-level cache, since they may lie a
// power of two apart and end inside the panel.
inline constexpr int kWindowK = 1024;
inline constexpr int kStripK = 64;

// Up to so many rows of A wait for weights more than for arithmetic: the rows stay in the
// first-level cache while all columns of a window pass by, and the next ones are asked for. Of more
// rows, the columns stay.
inline constexpr int kFewRows = 16;

// strip (n, 64) from the first `columns` columns of n rows of a plain matrix; zeros beyond.
template <class S>
inline void fill_strip(float* strip, const float* w, std::int64_t w_k, int n, int columns) {
  constexpr int kAhead = 24;  // rows: processors do not foresee steps as long as a row
  for (int k = 0; k < n; ++k, w += w_k, strip += kPanel) {
    if (columns == kPanel) {
      for (int c = 0; c < kPanel; c += 16) {
        __builtin_prefetch(w + kAhead * w_k + c);
        S::store(strip + c, S::load(w + c));
      }
    } else {
      for (int c = 0; c < kPanel; ++c) strip[c] = c < columns ? w[c] : 0.0f;
    }
  }
}

// strip (n, kTaskRows) from n values of k of a matrix A that is stored by k: its rows stand side by
// side, while successive k may lie a power of two apart, in one set of the first-level cache.
template <class S>
inline void fill_rows(float* strip, const float* a, std::int64_t a_k, int n, int rows) {
  for (int k = 0; k < n; ++k, a += a_k, strip += kTaskRows)
    for (int r = 0; r < rows; r += 16) {
      const int lanes = rows - r < 16 ? rows - r : 16;
      S::store_n(strip + r, S::load_n(a + r, lanes), lanes);
    }
}

// Asks for the lines of y that a block of rows of a panel will be stored to.
static inline void prefetch_sums(const ProductArgs& args, int row, int rows, int panel) {
  const bool is_fixed = args.fixed != nullptr;
  const int size = is_fixed ? static_cast<int>(sizeof(Fixed)) : static_cast<int>(sizeof(float));
  const char* sums =
      is_fixed ? reinterpret_cast<const char*>(args.fixed) : reinterpret_cast<const char*>(args.y);
  for (int r = row; r < row + rows; ++r)
    for (int byte = 0; byte < kPanel * size; byte += 64)
      __builtin_prefetch(sums + (r * args.y_row + panel * kPanel) * size + byte, 1);
}

// Adds sums (rows, 64) to fixed-point ones.
template <class S>
inline void add_fixed_sums(const ProductArgs& args, int row_begin, int rows, int panel,
                           const float* sums) {
  for (int r = 0; r < rows; ++r, sums += kPanel)
    for (int c = 0; c < kPanel; c += 16) {
      const int column = panel * kPanel + c;
      S::add_fixed(args.fixed + (row_begin + r) * args.y_row + column, S::load(sums + c),
                   valid_lanes(args, column));
    }
}

// Copies sums (partials, rows, 64) to y, with the bias.
template <class S>
inline void store_sums(const ProductArgs& args, int row_begin, int rows, int panel,
                       const float* sums) {
  for (int partial = 0; partial < args.partials; ++partial)
    for (int r = 0; r < rows; ++r, sums += kPanel)
      for (int c = 0; c < kPanel; c += 16) {
        const int column = panel * kPanel + c, lanes = valid_lanes(args, column);
        typename S::V sum = S::load(sums + c);
        if (args.bias != nullptr) sum = S::add(sum, S::load_n(args.bias + column, lanes));
        S::store_n(args.y + partial * args.y_partial + (row_begin + r) * args.y_row + column, sum,
                   lanes);
      }
}

template <class S>
inline void load_sums(const ProductArgs& args, int row_begin, int rows, int panel, float* sums) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < kPanel; c += 16) {
      const int column = panel * kPanel + c;
      const float* y = args.y + (row_begin + r) * args.y_row + column;
      S::store(sums + r * kPanel + c, S::load_n(y, valid_lanes(args, column)));
    }
}

// The rows and columns of one task.
struct TaskPart {
  const ProductArgs& args;
  int row_begin, rows, panel, columns;

  const float* a(int leaf, int k) const {
    return args.a + row_begin * args.a_row + leaf * args.a_leaf + k * args.a_k;
  }
  template <class W>
  const W* w(int leaf, int k) const {
    return static_cast<const W*>(args.w) + panel * args.w_panel + leaf * args.w_leaf + k * args.w_k;
  }
};

// Packed weights that follow in memory, and the steps of a sweep over columns, which may ask for
// some at each.
struct NextWeights {
  const void* begin = nullptr;
  std::int64_t bytes = 0, steps = 0;
};

// The operands of a task in Arithmetic::kF32: as they lie, or a few values of k of them at a time.
template <class Set, class W>
class ChainOperands {
 public:
  using S = Set;
  static constexpr int kMostRows = S::kProductRows;       // of a block
  static constexpr int kColumnStep = S::kProductVectors;  // vectors that many rows share
  // With many rows the second-level cache has the window, and the processor foresees the next one.
  static constexpr bool kAheadOfManyRows = false;
  template <int R>
  static constexpr int kVectors = block_vectors<S::kProductVectors, R>();

  explicit ChainOperands(const TaskPart& part)
      : part_(part), packed_(part.args.w_k == kPanel), by_rows_(part.args.a_k == 1) {}

  // Makes ready the next inputs of a leaf, from k on, of `left` ones; returns how many.
  int take(int leaf, int k, int left) {
    const ProductArgs& args = part_.args;
    const int window = packed_ && by_rows_ ? kWindowK : kStripK;
    n_ = left < window ? left : window;
    w_ = part_.w<W>(leaf, k);
    if constexpr (std::is_same_v<W, float>) {
      if (!packed_) {
        fill_strip<S>(w_strip_, w_, args.w_k, n_, part_.columns);
        w_ = w_strip_;
      }
    }
    a_ = part_.a(leaf, k);
    a_k_ = args.a_k;
    if (!by_rows_) {
      fill_rows<S>(a_strip_, a_, a_k_, n_, part_.rows);
      a_ = a_strip_;
      a_k_ = kTaskRows;
    }
    return n_;
  }

  NextWeights next_weights() const {
    return {w_ + n_ * kPanel, packed_ ? n_ * kPanel * static_cast<int>(sizeof(W)) : 0, n_};
  }

  // Extends the chains of R rows x N vectors from (row, column c) on by what was taken.
  template <int R, int N, class... Next>
  void extend(int row, int c, bool fresh, float* top, int merges, std::int64_t level,
              Next&... ahead) const {
    extend_block<S, R, N>(a_ + row * part_.args.a_row, part_.args.a_row, a_k_, w_ + c, n_, fresh,
                          top, merges, level, ahead...);
  }

 private:
  TaskPart part_;
  bool packed_, by_rows_;
  int n_ = 0;
  const W* w_ = nullptr;
  const float* a_ = nullptr;
  std::int64_t a_k_ = 1;
  alignas(64) float w_strip_[kStripK * kPanel];
  alignas(64) float a_strip_[kStripK * kTaskRows];
};

template <class Operands>
inline void panel_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  using S = typename Operands::S;
  alignas(64) float
      stack[kMaxTreeDepth * kLeafRows * kPanel];  // (depth, rows, 64); deeper levels stay untouched
  const int rows = row_end - row_begin;
  const int columns =
      args.columns - panel * kPanel < kPanel ? args.columns - panel * kPanel : kPanel;
  const std::int64_t level = std::int64_t{rows} * kPanel;
  Operands operands(TaskPart{args, row_begin, rows, panel, columns});
  if (args.accumulate) load_sums<S>(args, row_begin, rows, panel, stack);
  float* top = stack;
  for (int leaf = 0; leaf < args.leaves; ++leaf) {
    const int k_total = leaf + 1 == args.leaves ? args.last_leaf_k : args.leaf_k;
    const int merges = args.program == nullptr ? 0 : args.program[leaf];
    int k = 0;
    do {
      const int n = operands.take(leaf, k, k_total - k);
      const bool fresh = k == 0 && !args.accumulate, whole = k + n == k_total;
      const auto extend = [&]<int R, int N>(int row, int c, auto&... ahead) {
        if (whole && c == 0) prefetch_sums(args, row_begin + row, R, panel);
        operands.template extend<R, N>(row, c, fresh, top + row * kPanel + c, whole ? merges : 0,
                                       level, ahead...);
      };
      if (rows <= kFewRows) {
        std::int64_t sweeps = 0;
        for_row_blocks<Operands::kMostRows>(
            rows, [&]<int R>(int) { sweeps += kPanel / 16 / Operands::template kVectors<R>; });
        const NextWeights next = operands.next_weights();
        Ahead ahead(next.begin, next.bytes, sweeps * next.steps);
        for_row_blocks<Operands::kMostRows>(rows, [&]<int R>(int row) {
          constexpr int N = Operands::template kVectors<R>;
          for (int c = 0; c < columns; c += 16 * N) extend.template operator()<R, N>(row, c, ahead);
        });
      } else {
        constexpr int kStep = Operands::kColumnStep;
        const NextWeights next =
            Operands::kAheadOfManyRows ? operands.next_weights() : NextWeights{};
        Ahead ahead(next.begin, next.bytes, (rows / Operands::kMostRows) * (kPanel / 16 / kStep));
        for (int c = 0; c < columns; c += 16 * kStep)
          for_row_blocks<Operands::kMostRows>(rows, [&]<int R>(int row) {
            if constexpr (Operands::kAheadOfManyRows) ahead.fetch();
            constexpr int N =
                Operands::template kVectors<R> < kStep ? Operands::template kVectors<R> : kStep;
            for (int at = c; at < c + 16 * kStep && at < columns; at += 16 * N)
              extend.template operator()<R, N>(row, at);
          });
      }
      k += n;
    } while (k < k_total);
    top += (1 - merges) * level;
  }
  if (args.fixed != nullptr)
    add_fixed_sums<S>(args, row_begin, rows, panel, stack);
  else
    store_sums<S>(args, row_begin, rows, panel, stack);
}

// One task of a product: rows [row_begin, row_end) of one panel, at most kTaskRows or, with leaves,
// kLeafRows. Weights in bf16 are packed.
template <class S>
void product_task(const ProductArgs& args, int row_begin, int row_end, int panel) {
  args.w_is_bf16 ? panel_task<ChainOperands<S, bf16>>(args, row_begin, row_end, panel)
                 : panel_task<ChainOperands<S, float>>(args, row_begin, row_end, panel);
}

}  // namespace taper::detail
