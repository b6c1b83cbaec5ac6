// SPDX-License-Identifier: Apache-2.0
#include "io/SafetensorsWriter.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "base/Error.hpp"
#include "support/Scratch.hpp"
#include "support/TensorRows.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Error;
using taper::SafetensorsFile;
using taper::SafetensorsWriter;
using taper::TensorType;
using taper::test::read_rows;
using taper::test::Scratch;

namespace {

std::vector<float> counting(std::size_t count, float from = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

std::vector<float> all_of(const SafetensorsFile& file, const std::string& name) {
  const auto& view = file.tensor(name);
  std::vector<float> values(static_cast<std::size_t>(view.rows() * view.columns()));
  read_rows(file, name, 0, view.rows(), values);
  return values;
}

}  // namespace

TEST_CASE("a file written from slices is read back") {
  const Scratch scratch;
  const auto path = scratch / "model.safetensors";
  SafetensorsWriter writer(path, {{"odd", TensorType::kBf16, {3}},
                                  {"m", TensorType::kF32, {4, 3}},
                                  {"blocks", TensorType::kBf16, {2, 4}},
                                  {"none", TensorType::kF32, {0, 5}}});
  writer.write_block("m", 2, 4, 0, 3, counting(6, 6));
  writer.write_block("m", 0, 2, 0, 3, counting(6));
  writer.write_block("blocks", 0, 2, 1, 4, std::vector<float>{1, 2, 3, 5, 6, 7});
  writer.write_block("blocks", 0, 2, 0, 1, std::vector<float>{0, 4});
  writer.write_block("odd", 0, 3, 0, 1, std::vector<float>{1.00390625f, 1.01171875f, -3});
  CHECK_FALSE(std::filesystem::exists(path));
  writer.commit();

  const auto file = SafetensorsFile::open(path);
  CHECK(all_of(file, "m") == counting(12));
  CHECK(all_of(file, "blocks") == counting(8));
  CHECK(all_of(file, "odd") == std::vector<float>{1, 1.015625f, -3});  // both ties go to even
  CHECK(file.tensor("none").shape == std::vector<std::int64_t>{0, 5});
  for (const auto& name : file.names()) {
    const auto& view = file.tensor(name);
    CHECK(reinterpret_cast<std::uintptr_t>(view.bytes.data()) % taper::size_of(view.type) == 0);
  }
}

TEST_CASE("a large bf16 tensor goes through in pieces") {
  const Scratch scratch;
  const std::int64_t count = 200'000;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256);
  SafetensorsWriter writer(scratch / "a", {{"t", TensorType::kBf16, {count}}});
  writer.write_block("t", 0, count, 0, 1, values);
  writer.commit();
  CHECK(all_of(SafetensorsFile::open(scratch / "a"), "t") == values);
}

TEST_CASE("an unfinished file does not appear") {
  const Scratch scratch;
  const auto path = scratch / "a.safetensors";
  {
    SafetensorsWriter writer(path, {{"m", TensorType::kF32, {2, 2}}});
    writer.write_block("m", 0, 1, 0, 2, counting(2));
    CHECK_THROWS_MATCHES(writer.commit(), Error,
                         MessageMatches(ContainsSubstring("tensor m got 8 of its 16 bytes")));
  }
  CHECK(std::filesystem::is_empty(scratch.path()));
}

TEST_CASE("wrong pieces are refused by name") {
  const Scratch scratch;
  SafetensorsWriter writer(scratch / "a",
                           {{"m", TensorType::kF32, {2, 2}}, {"i", TensorType::kI32, {2}}});
  CHECK_THROWS_MATCHES(writer.write_block("x", 0, 1, 0, 2, counting(2)), Error,
                       MessageMatches(ContainsSubstring("tensor x")));
  CHECK_THROWS_AS(writer.write_block("m", 1, 3, 0, 2, counting(4)), Error);
  CHECK_THROWS_AS(writer.write_block("m", 0, 1, 0, 2, counting(3)), Error);
  CHECK_THROWS_AS(writer.write_block("m", 0, 1, 1, 3, counting(2)), Error);
  CHECK_THROWS_MATCHES(writer.write_block("i", 0, 2, 0, 1, counting(2)), Error,
                       MessageMatches(ContainsSubstring("I32")));
}

TEST_CASE("bad declarations are refused") {
  const Scratch scratch;
  const auto declare = [&](std::vector<taper::TensorSpec> specs) {
    SafetensorsWriter(scratch / "a", std::move(specs));
  };
  CHECK_THROWS_AS(declare({{"a", TensorType::kF32, {1}}, {"a", TensorType::kF32, {1}}}), Error);
  CHECK_THROWS_AS(declare({{"__metadata__", TensorType::kF32, {1}}}), Error);
  CHECK_THROWS_AS(declare({{"a", TensorType::kF32, {-1}}}), Error);
  CHECK(std::filesystem::is_empty(scratch.path()));
}
