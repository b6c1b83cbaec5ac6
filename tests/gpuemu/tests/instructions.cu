// SPDX-License-Identifier: Apache-2.0
//
// Instructions against the host: the same functions, compiled by nvcc for both, on the same values.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/detail/Warpgroup.hpp"

namespace {

using namespace taper;
using detail::Lines;

int failures = 0;

void check(cudaError_t e, int line) {
  if (e == cudaSuccess) return;
  std::printf("line %d: %s\n", line, cudaGetErrorName(e));
  std::exit(3);
}
#define CHECK(call) check(call, __LINE__)

// --- functions of one thread, which the host computes as well ---

__host__ __device__ inline std::uint64_t integers(std::uint64_t x, std::uint64_t y) {
  const auto a = static_cast<std::uint32_t>(x), b = static_cast<std::uint32_t>(y);
  const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
  const auto la = static_cast<std::int64_t>(x), lb = static_cast<std::int64_t>(y | 1);
  std::uint64_t r = a * b + (a ^ b);
  r = r * 31 + (static_cast<std::uint64_t>(a) * b >> 32);
  r = r * 31 + static_cast<std::uint64_t>(static_cast<std::int64_t>(sa) * sb);
  r = r * 31 + a / (b | 1) + a % (b | 1);
  r = r * 31 + static_cast<std::uint64_t>(sa / (sb | 1)) +
      static_cast<std::uint64_t>(sa % (sb | 1));
  r = r * 31 + static_cast<std::uint64_t>(la / lb) + static_cast<std::uint64_t>(la % lb) +
      x / (y | 1);
  r = r * 31 + (a << (b & 31)) + (a >> (b & 31)) + static_cast<std::uint32_t>(sa >> (b & 31));
  r = r * 31 + (x << (y & 63)) + (x >> (y & 63)) + static_cast<std::uint64_t>(la >> (y & 63));
  r = r * 31 + (sa < sb ? 1 : 2) + (a < b ? 4 : 8) + (la < lb ? 16 : 32);
  r = r * 31 + static_cast<std::uint8_t>(a) +
      static_cast<std::uint64_t>(static_cast<std::int8_t>(b));
  r = r * 31 + static_cast<std::uint16_t>(a * 3) +
      static_cast<std::uint64_t>(static_cast<std::int16_t>(b * 5));
  r = r * 31 + static_cast<std::uint64_t>(std::abs(sa >> 1)) +
      static_cast<std::uint64_t>(sa > sb ? sa : sb);
  for (int k = 0; k < static_cast<int>(a % 13); ++k) {  // a loop of another length in each thread
    r = r * 2862933555777941757ull + static_cast<std::uint64_t>(k);
    if (r & 1) {
      r ^= y;
    } else if (r & 2) {
      continue;
    }
    switch (r >> 2 & 7) {
      case 0:
        r += 5;
        break;
      case 1:
        r -= 7;
        break;
      case 2:
        r ^= 99;
        break;
      case 5:
        r = r << 3 | r >> 61;
        break;
      default:
        r += x;
    }
  }
  return r;
}

// As the kernels do: fused where it is written, flushed to zero like the host's own kernels.
__host__ __device__ inline float floats(float a, float b, float c) {
  float r = fmaf(a, b, c);
  r = r + a * 0.5f;
  r = r - b / (fabsf(c) + 1.0f);
  r = r * 1.25f + sqrtf(fabsf(a));
  r = fminf(r, 1e30f);
  r = fmaxf(r, -1e30f);
  return r + (a < b ? floorf(c) : rintf(c));
}

__host__ __device__ inline double doubles(double a, double b, double c) {
  return fma(a, b, c) / (fabs(a) + 1.0) + sqrt(fabs(b)) - floor(c);
}

__host__ __device__ inline std::int64_t conversions(float a, double b, std::int64_t c) {
  std::int64_t r = static_cast<int>(a);
  r = r * 31 + static_cast<std::int64_t>(b);
  r = r * 31 + static_cast<std::int64_t>(static_cast<float>(c) * 0.25f);
  r = r * 31 + static_cast<std::int64_t>(static_cast<double>(c) * 0.125);
  r = r * 31 + static_cast<std::int64_t>(static_cast<float>(b) * 8.0f);
  r = r * 31 + static_cast<std::int64_t>(static_cast<double>(a) * 3.0);
  return r * 31 + static_cast<std::int64_t>(static_cast<float>(static_cast<std::uint32_t>(c)));
}

__global__ void run_integers(const std::uint64_t* x, const std::uint64_t* y, std::uint64_t* out,
                             int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = integers(x[i], y[i]);
}
__global__ void run_floats(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = floats(x[i], x[(i + 1) % n], x[(i + 2) % n]);
}
__global__ void run_doubles(const double* x, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = doubles(x[i], x[(i + 1) % n], x[(i + 2) % n]);
}
__global__ void run_conversions(const float* a, const double* b, const std::int64_t* c,
                                std::int64_t* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = conversions(a[i], b[i], c[i]);
}

// --- what threads do together ---

__device__ __noinline__ int called(int depth, int value) {
  return depth == 0 ? value : called(depth - 1, value + depth) + 1;
}

__global__ void together(std::uint32_t* out, unsigned long long* sums, int n) {
  const int t = threadIdx.x, lane = t % 32;
  std::uint32_t r = static_cast<std::uint32_t>(t * t + 7);
  r += __shfl_xor_sync(~0u, r, 5);
  r += __shfl_up_sync(~0u, r, 3);
  r += __shfl_down_sync(~0u, r, 2, 16);
  r += __shfl_sync(~0u, r, (lane + 9) % 32);
  r += __popc(__ballot_sync(~0u, r % 3 == 0)) + (__all_sync(~0u, lane < 32) ? 1000 : 0) +
       (__any_sync(~0u, lane == 40) ? 5 : 0);
  r += __reduce_add_sync(~0u, lane) + __match_any_sync(~0u, lane / 5);
  if (lane % 3 == 1) r += __shfl_sync(__activemask(), r, 1);
  r += static_cast<std::uint32_t>(called(lane % 4, lane));
  int table[8];  // indexed by a value: local memory
  for (int k = 0; k < 8; ++k) table[k] = k * 11 + t;
  r += static_cast<std::uint32_t>(table[(r >> 3) % 8]);
  out[blockIdx.x * blockDim.x + t] = r;
  atomicAdd(&sums[0], static_cast<unsigned long long>(r));
  atomicMax(&sums[1], static_cast<unsigned long long>(r));
  atomicXor(reinterpret_cast<unsigned*>(&sums[2]), r);
  if (t == 0 && atomicAdd(&sums[3], 1ull) == static_cast<unsigned long long>(n - 1))
    sums[4] = sums[3];
}

// The host's own version of one warp of `together`.
std::vector<std::uint32_t> together_on_host(int first) {
  std::vector<std::uint32_t> r(32), s(32);
  for (int l = 0; l < 32; ++l) r[l] = static_cast<std::uint32_t>((first + l) * (first + l) + 7);
  const auto exchange = [&](auto from) {
    s = r;
    for (int l = 0; l < 32; ++l) r[l] += s[from(l)];
  };
  exchange([](int l) { return l ^ 5; });
  exchange([](int l) { return l >= 3 ? l - 3 : l; });
  exchange([](int l) { return l % 16 + 2 < 16 ? l + 2 : l; });
  exchange([](int l) { return (l + 9) % 32; });
  int threes = 0;
  for (int l = 0; l < 32; ++l) threes += r[l] % 3 == 0;
  for (int l = 0; l < 32; ++l) {
    std::uint32_t equal = 0;
    for (int k = 0; k < 32; ++k) equal |= k / 5 == l / 5 ? 1u << k : 0;
    r[l] += static_cast<std::uint32_t>(threes) + 1000 + 496 + equal;
  }
  s = r;
  for (int l = 1; l < 32; l += 3) r[l] += s[1];
  for (int l = 0; l < 32; ++l) {
    const int d = l % 4;
    r[l] += static_cast<std::uint32_t>(l + d * (d + 1) / 2 + d);
    r[l] +=
        static_cast<std::uint32_t>((r[l] >> 3) % 8 * 11) + static_cast<std::uint32_t>(first + l);
  }
  return r;
}

// --- a product of tiles, operands through shared memory ---

__global__ void product(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                        int k_size) {  // (16, k) (8, k)
  __shared__ alignas(16) __nv_bfloat16 ta[16][24], tb[8][24];
  const int lane = threadIdx.x;
  float d[4] = {};
  for (int k0 = 0; k0 < k_size; k0 += 16) {
    for (int i = lane; i < 256; i += 32) ta[i / 16][i % 16] = a[i / 16 * k_size + k0 + i % 16];
    for (int i = lane; i < 128; i += 32) tb[i / 16][i % 16] = b[i / 16 * k_size + k0 + i % 16];
    __syncwarp();
    std::uint32_t fa[4], fb[2];
    const auto pa = static_cast<unsigned>(__cvta_generic_to_shared(&ta[lane % 16][lane / 16 * 8]));
    const auto pb =
        static_cast<unsigned>(__cvta_generic_to_shared(&tb[lane % 8][lane / 8 % 2 * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1])
                 : "r"(pb));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncwarp();
  }
  for (int r = 0; r < 4; ++r) c[(lane / 4 + r / 2 * 8) * 8 + lane % 4 * 2 + r % 2] = d[r];
}

// --- the same by a warpgroup: a (64, 64) b (n, 64) ---

// Where value k of row, or column, r is.
__host__ __device__ inline int place_of(Lines lines, int r, int k) {
  const int line = lines == Lines::kInputs ? r / 64 * 64 + k : r,
            at = lines == Lines::kInputs ? r % 64 : k;
  return line * 64 + (at / 8 ^ line % 8) * 8 + at % 8;
}

template <Lines left, Lines right, int n>
__global__ void product_of_warpgroup([[maybe_unused]] const bf16* a, [[maybe_unused]] const bf16* b,
                                     [[maybe_unused]] float* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) bf16 tiles[];
  bf16 *const ta = tiles, *const tb = tiles + 64 * 64;
  const int t = static_cast<int>(threadIdx.x);
  for (int i = t; i < 64 * 64; i += 128) ta[place_of(left, i / 64, i % 64)] = a[i];
  for (int i = t; i < n * 64; i += 128) tb[place_of(right, i / 64, i % 64)] = b[i];
  detail::release_to_products();
  __syncthreads();
  float sums[n / 8][4];
  const auto x = detail::operand_of<left>(ta), y = detail::operand_of<right>(tb, 64 * 64 * 2);
  detail::begin_products();
  for (int k = 0; k < 64; k += 16)
    detail::start_product<left, right>(sums, detail::operand_at<left>(x, k),
                                       detail::operand_at<right>(y, k), k > 0);
  detail::end_product_group();
  detail::await_products();
  detail::keep_sums(sums);
  for (int j = 0; j < n / 8; ++j)
    for (int i = 0; i < 4; ++i)
      c[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * n + 8 * j + t % 4 * 2 + i % 2] = sums[j][i];
#endif
}

// --- the tests ---

template <class T>
T* to_device(const std::vector<T>& host) {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return static_cast<T*>(p);
}

template <class T>
std::vector<T> to_host(const T* device, std::size_t n) {
  std::vector<T> host(n);
  CHECK(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

template <class T>
void compare(const char* name, const std::vector<T>& got, const std::vector<T>& expected) {
  std::size_t wrong = 0, first = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    if (std::memcmp(&got[k], &expected[k], sizeof(T)) == 0) continue;
    if (wrong++ == 0) first = k;
  }
  if (wrong > 0) {
    std::printf("%s: %zu of %zu differ, first %zu: %.17g, expected %.17g\n", name, wrong,
                expected.size(), first, static_cast<double>(got[first]),
                static_cast<double>(expected[first]));
    ++failures;
  }
}

constexpr int kValues = 3000;

void test_threads() {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> x(kValues), y(kValues), expected(kValues);
  std::vector<float> f(kValues), expected_f(kValues);
  std::vector<double> d(kValues), expected_d(kValues);
  std::vector<std::int64_t> c(kValues), expected_c(kValues);
  for (int i = 0; i < kValues; ++i) {
    x[i] = random() >> random() % 60;
    y[i] = random() >> random() % 60;
    f[i] = std::ldexp(static_cast<float>(static_cast<std::int64_t>(random() % 20001) - 10000),
                      static_cast<int>(random() % 34) - 20);  // within int
    d[i] = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random() % 2000001) - 1000000),
                      static_cast<int>(random() % 30) - 20);
    c[i] = static_cast<std::int64_t>(random()) >> random() % 60;
  }
  for (int i = 0; i < kValues; ++i) {
    expected[i] = integers(x[i], y[i]);
    expected_f[i] = floats(f[i], f[(i + 1) % kValues], f[(i + 2) % kValues]);
    expected_d[i] = doubles(d[i], d[(i + 1) % kValues], d[(i + 2) % kValues]);
    expected_c[i] = conversions(f[i], d[i], c[i]);
  }
  auto* out = to_device(expected);
  auto* out_f = to_device(expected_f);
  auto* out_d = to_device(expected_d);
  auto* out_c = to_device(expected_c);
  run_integers<<<(kValues + 95) / 96, 96>>>(to_device(x), to_device(y), out, kValues);
  run_floats<<<(kValues + 127) / 128, 128>>>(to_device(f), out_f, kValues);
  run_doubles<<<(kValues + 127) / 128, 128>>>(to_device(d), out_d, kValues);
  run_conversions<<<(kValues + 127) / 128, 128>>>(to_device(f), to_device(d), to_device(c), out_c,
                                                  kValues);
  CHECK(cudaDeviceSynchronize());
  compare("integers", to_host(out, kValues), expected);
  compare("floats", to_host(out_f, kValues), expected_f);
  compare("doubles", to_host(out_d, kValues), expected_d);
  compare("conversions", to_host(out_c, kValues), expected_c);
}

void test_together() {
  constexpr int blocks = 5, threads = 96;
  auto* out = to_device(std::vector<std::uint32_t>(blocks * threads));
  auto* sums = to_device(std::vector<unsigned long long>(5));
  together<<<blocks, threads>>>(out, sums, blocks);
  std::vector<std::uint32_t> expected;
  std::vector<unsigned long long> totals(5);
  for (int b = 0; b < blocks; ++b) {
    for (int first = 0; first < threads; first += 32) {
      for (std::uint32_t r : together_on_host(first)) {
        expected.push_back(r);
        totals[0] += r;
        totals[1] = std::max<unsigned long long>(totals[1], r);
        totals[2] ^= r;
      }
    }
  }
  totals[3] = totals[4] = blocks;
  compare("threads together", to_host(out, expected.size()), expected);
  compare("atomic operations", to_host(sums, 5), totals);
}

// Small integers make any order of sums exact.
void test_product() {
  constexpr int k_size = 64;
  std::mt19937 random(5);
  std::vector<__nv_bfloat16> a(16 * k_size), b(8 * k_size);
  for (auto& v : a) v = __float2bfloat16(static_cast<float>(random() % 31) - 15.0f);
  for (auto& v : b) v = __float2bfloat16(static_cast<float>(random() % 31) - 15.0f);
  std::vector<float> expected(128);
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < k_size; ++k)
        expected[r * 8 + n] +=
            __bfloat162float(a[r * k_size + k]) * __bfloat162float(b[n * k_size + k]);
    }
  }
  auto* c = to_device(expected);
  product<<<1, 32>>>(to_device(a), to_device(b), c, k_size);
  compare("product of tiles", to_host(c, 128), expected);
}

template <Lines left, Lines right, int n>
void test_warpgroup() {
  std::mt19937 random(7);
  std::vector<bf16> a(64 * 64), b(n * 64);
  for (auto& v : a) v = to_bf16(static_cast<float>(random() % 31) - 15.0f);
  for (auto& v : b) v = to_bf16(static_cast<float>(random() % 31) - 15.0f);
  std::vector<float> expected(64 * n);
  for (int r = 0; r < 64; ++r)
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < 64; ++k)
        expected[r * n + i] += to_float(a[r * 64 + k]) * to_float(b[i * 64 + k]);
  auto* c = to_device(std::vector<float>(64 * n));
  product_of_warpgroup<left, right, n>
      <<<1, 128, (64 + n) * 64 * sizeof(bf16)>>>(to_device(a), to_device(b), c);
  compare("product of a warpgroup", to_host(c, 64 * n), expected);
}

}  // namespace

int main() {
  test_threads();
  test_together();
  test_product();
  int architecture = 0;
  CHECK(cudaDeviceGetAttribute(&architecture, cudaDevAttrComputeCapabilityMajor, 0));
  if (architecture == 9) {
    test_warpgroup<Lines::kOutputs, Lines::kOutputs, 64>();
    test_warpgroup<Lines::kOutputs, Lines::kInputs, 128>();
    test_warpgroup<Lines::kInputs, Lines::kOutputs, 64>();
    test_warpgroup<Lines::kInputs, Lines::kOutputs, 128>();
    test_warpgroup<Lines::kInputs, Lines::kInputs, 64>();
    test_warpgroup<Lines::kInputs, Lines::kInputs, 128>();
  }
  std::printf(failures == 0 ? "all equal\n" : "%d tests failed\n", failures);
  return failures == 0 ? 0 : 1;
}
