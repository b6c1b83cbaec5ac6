// SPDX-License-Identifier: Apache-2.0
#include "io/Safetensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>

#include "base/Error.hpp"
#include "io/detail/HalfFloat.hpp"
#include "support/Scratch.hpp"
#include "support/TensorRows.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Error;
using taper::SafetensorsDir;
using taper::SafetensorsFile;
using taper::TensorType;
using taper::test::read_rows;
using taper::test::Scratch;
using taper::test::spill;

namespace {

std::string file_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// "m": F32 (2, 3) = 0..5; "h": F16 (2) = 1, -2; "b": BF16 (1, 2) = 3, 0.5.
std::string good_file() {
  return file_bytes(
      R"({"__metadata__":{"format":"pt"},"m":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("h":{"dtype":"F16","shape":[2],"data_offsets":[24,28]},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[28,32]}})",
      raw<float>({0, 1, 2, 3, 4, 5}) + raw<std::uint16_t>({0x3c00, 0xc000, 0x4040, 0x3f00}));
}

std::string one_tensor(const std::string& entry, std::size_t bytes) {
  return file_bytes("{\"t\":" + entry + "}", std::string(bytes, '\0'));
}

}  // namespace

TEST_CASE("tensors of a safetensors file") {
  const Scratch scratch;
  spill(scratch / "a.safetensors", good_file());
  const auto file = SafetensorsFile::open(scratch / "a.safetensors");
  CHECK(file.names() == std::vector<std::string>{"b", "h", "m"});
  const auto& m = file.tensor("m");
  CHECK(m.type == TensorType::kF32);
  CHECK(m.shape == std::vector<std::int64_t>{2, 3});
  CHECK(m.bytes.size() == 24);
  CHECK(file.tensor("h").rows() == 2);
  CHECK(file.tensor("h").columns() == 1);

  std::vector<float> row(3), block(2), halves(2), one(1);
  read_rows(file, "m", 1, 2, row);
  CHECK(row == std::vector<float>{3, 4, 5});
  file.read_f32_block("m", 0, 2, 1, 2, block);
  CHECK(block == std::vector<float>{1, 4});
  read_rows(file, "h", 0, 2, halves);
  CHECK(halves == std::vector<float>{1, -2});
  file.read_f32_block("b", 0, 1, 1, 2, one);
  CHECK(one == std::vector<float>{0.5});
  read_rows(file, "m", 1, 1, {});
}

TEST_CASE("reading outside a tensor is refused") {
  const Scratch scratch;
  spill(scratch / "a.safetensors", good_file());
  const auto file = SafetensorsFile::open(scratch / "a.safetensors");
  std::vector<float> out(6);
  CHECK_THROWS_MATCHES(read_rows(file, "m", 1, 3, out), Error,
                       MessageMatches(ContainsSubstring("2 x 3")));
  CHECK_THROWS_AS(read_rows(file, "m", -1, 1, out), Error);
  CHECK_THROWS_AS(file.read_f32_block("m", 0, 2, 2, 4, std::span(out).first(4)), Error);
  CHECK_THROWS_MATCHES(read_rows(file, "m", 0, 1, out), Error,
                       MessageMatches(ContainsSubstring("buffer")));
  CHECK_THROWS_MATCHES(file.tensor("hh"), Error,
                       MessageMatches(ContainsSubstring("did you mean h?")));
}

TEST_CASE("integer tensors are not read as weights") {
  const Scratch scratch;
  spill(scratch / "a.safetensors",
        one_tensor(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})", 8));
  const auto file = SafetensorsFile::open(scratch / "a.safetensors");
  std::vector<float> out(1);
  CHECK_THROWS_MATCHES(read_rows(file, "t", 0, 1, out), Error,
                       MessageMatches(ContainsSubstring("I64")));
}

TEST_CASE("scalars and empty tensors") {
  const Scratch scratch;
  spill(
      scratch / "a.safetensors",
      file_bytes(
          R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,4],"data_offsets":[4,4]}})",
          raw<float>({2.5f})));
  const auto file = SafetensorsFile::open(scratch / "a.safetensors");
  std::vector<float> out(1);
  read_rows(file, "s", 0, 1, out);
  CHECK(out[0] == 2.5f);
  CHECK(file.tensor("e").bytes.empty());
  read_rows(file, "e", 0, 0, {});
}

TEST_CASE("damaged safetensors files are refused by name") {
  const Scratch scratch;
  const auto path = scratch / "bad.safetensors";
  const std::string f32x2 = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const std::string u = R"("u":{"dtype":"F32","shape":[1],"data_offsets":)";
  struct Case {
    std::string bytes, says;
  };
  const auto damage = GENERATE_COPY(values<Case>({
      {"abc", "only 3 bytes"},
      {good_file().substr(0, 60), "truncated"},
      {good_file().substr(0, good_file().size() - 1), "tensor b ends at byte 32"},
      {good_file() + "x", "1 bytes after"},
      {std::string(8, '\xff') + "{}", "not a safetensors file"},
      {file_bytes("{\"t\": nonsense", ""), "no valid header"},
      {file_bytes("[1]", ""), "no valid header"},
      {file_bytes("{\"__metadata__\":{\"a\":1}}", ""), "__metadata__"},
      {one_tensor(f32x2, 4), "truncated"},
      {one_tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", 8), "tensor t"},
      {one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8), "tensor t"},
      {one_tensor(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})", 8), "unknown dtype F31"},
      {one_tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8), "tensor t"},
      {one_tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})", 8),
       "impossible shape"},
      {one_tensor(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})", 8),
       "impossible shape"},
      {one_tensor(R"({"dtype":"F32","shape":[2]})", 8), "tensor t is not described"},
      {one_tensor("7", 8), "tensor t is not described"},
      {one_tensor(f32x2 + "," + u + "[4,8]}", 8), "overlap"},
      {one_tensor(f32x2 + "," + u + "[12,16]}", 16), "hole"},
      {one_tensor(f32x2 + ",\"t\":" + f32x2, 8), "appears twice"},
  }));
  CAPTURE(damage.says);
  spill(path, damage.bytes);
  CHECK_THROWS_MATCHES(
      SafetensorsFile::open(path), Error,
      MessageMatches(ContainsSubstring("bad.safetensors") && ContainsSubstring(damage.says)));
}

TEST_CASE("a model directory with one file") {
  const Scratch scratch;
  spill(scratch / "model.safetensors", good_file());
  const auto dir = SafetensorsDir::open(scratch.path());
  CHECK(dir.names() == std::vector<std::string>{"b", "h", "m"});
  std::vector<float> row(3);
  read_rows(dir, "m", 0, 1, row);
  CHECK(row == std::vector<float>{0, 1, 2});
  CHECK_THROWS_MATCHES(dir.tensor("mm"), Error,
                       MessageMatches(ContainsSubstring("did you mean m?")));
}

TEST_CASE("a model directory with shards") {
  const Scratch scratch;
  const auto index = scratch / "model.safetensors.index.json";
  spill(scratch / "one.safetensors", good_file());
  spill(scratch / "two.safetensors",
        one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8));
  spill(index,
        R"({"weight_map":{"m":"one.safetensors","h":"one.safetensors","t":"two.safetensors"}})");
  auto dir = SafetensorsDir::open(scratch.path());
  CHECK(dir.names() == std::vector<std::string>{"h", "m", "t"});
  CHECK(dir.tensor("t").bytes.size() == 8);
  CHECK_FALSE(dir.contains("b"));  // in the file, not in the index
  std::vector<float> row(3);
  read_rows(dir, "m", 1, 2, row);
  CHECK(row == std::vector<float>{3, 4, 5});

  spill(index, R"({"weight_map":{"x":"two.safetensors"}})");
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("tensor x")));
  spill(index, R"({"weight_map":{"x":"three.safetensors"}})");
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("three")));
  spill(index, R"({"weight_map":{"x":"../one.safetensors"}})");
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("within")));
  spill(index, R"({"weights":{}})");
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("weight_map")));
}

TEST_CASE("a directory without weights is refused") {
  const Scratch scratch;
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("no weights")));
  CHECK_THROWS_MATCHES(SafetensorsDir::open(scratch / "x"), Error,
                       MessageMatches(ContainsSubstring("not a directory")));
}

TEST_CASE("every half is widened exactly") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float got = taper::detail::float_from_f16(half);
    const int exponent = (half >> 10) & 31;
    const int fraction = half & 1023;
    const double sign = (half & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) {
      if (fraction != 0 ? !std::isnan(got) : got != sign * INFINITY) FAIL("half " << bits);
    } else {
      const double expected = sign * (exponent == 0 ? std::ldexp(fraction, -24)
                                                    : std::ldexp(1024 + fraction, exponent - 25));
      if (static_cast<double>(got) != expected || std::signbit(got) != (sign < 0))
        FAIL("half " << bits);
    }
  }
}
