// SPDX-License-Identifier: Apache-2.0
#include "io/Hdf5File.hpp"

#include <fcntl.h>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <numeric>

#include "base/Error.hpp"
#include "io/AtomicFile.hpp"
#include "io/Descriptor.hpp"
#include "io/detail/Hdf5Layout.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Checksum;
using taper::DatasetOptions;
using taper::Dims;
using taper::Error;
using taper::Hdf5File;
using taper::product;
using taper::test::Scratch;
using taper::test::slurp;
using taper::test::spill;

namespace {

template <class T>
void write_scalar(Hdf5File& file, const std::string& name, T value,
                  const DatasetOptions& options = {}) {
  file.write<T>(name, std::span<const T>(&value, 1), {}, options);
}

template <class T>
T read_scalar(const Hdf5File& file, const std::string& name) {
  const auto array = file.read<T>(name);
  REQUIRE(array.dims.empty());
  return array.values.at(0);
}

}  // namespace

TEMPLATE_TEST_CASE("numbers of every type come back", "", float, double, std::int8_t, std::int16_t,
                   std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t) {
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  const std::vector<TestType> values = {
      0, 1, std::numeric_limits<TestType>::max(), std::numeric_limits<TestType>::lowest(), 7, 8};
  {
    auto file = Hdf5File::create(path);
    file.write<TestType>("/x/y/plain", values, {2, 3}, {.checksum = Checksum::kNone});
    file.write<TestType>("/x/packed", values, {3, 2}, {.compression = 6});
    write_scalar<TestType>(file, "scalar", values[2]);
    file.close();
  }
  const auto file = Hdf5File::open_read(path);
  const auto plain = file.read<TestType>("/x/y/plain");
  CHECK(plain.values == values);
  CHECK(plain.dims == Dims{2, 3});
  CHECK(file.read<TestType>("x/packed").values == values);
  CHECK(read_scalar<TestType>(file, "/scalar") == values[2]);
  CHECK(file.read<TestType>("/scalar").dims.empty());
  CHECK(file.read_slab<TestType>("/x/y/plain", {1, 1}, {1, 2}) == std::vector<TestType>{7, 8});
}

TEST_CASE("empty arrays come back empty") {
  auto file = Hdf5File::create_in_memory("test");
  file.write<double>("none", std::vector<double>{});
  file.write<float>("flat", {}, {0, 4}, {.compression = 4});
  CHECK(file.read<double>("none").values.empty());
  CHECK(file.read<float>("flat").dims == Dims{0, 4});
  CHECK(file.read_slab<float>("flat", {0, 0}, {0, 4}).empty());
}

TEST_CASE("arrays are filled from outside at the places that were reserved for them") {
  Scratch scratch;
  const auto path = scratch / "a.h5";
  const std::vector<float> values{1.5f, -2.0f, 3.25f, 0.0f, 5.0f, 6.0f};
  const std::vector<std::uint64_t> words{1, ~std::uint64_t{0}};
  std::int64_t floats = 0, integers = 0;
  {
    Hdf5File file = Hdf5File::create(path);
    floats = file.reserve<float>("/g/floats", {3, 2});
    CHECK(file.reserve<float>("/g/none", {0, 2}) == 0);
    integers = file.reserve<std::uint64_t>("/words", {2});
    file.set_attribute("/words", "note", "later");
    file.close();
  }
  CHECK(Hdf5File::open_read(path).dims("/g/floats") == Dims{3, 2});
  taper::detail::Descriptor file(path, O_WRONLY);
  file.write_at(integers, std::as_bytes(std::span(words)));
  file.write_at(floats + 2 * std::int64_t{sizeof(float)},
                std::as_bytes(std::span(values).subspan(2)));
  file.write_at(floats, std::as_bytes(std::span(values).first(2)));
  file.close();
  const Hdf5File read = Hdf5File::open_read(path);
  CHECK(read.read<float>("/g/floats").values == values);
  CHECK(read.read<std::uint64_t>("/words").values == words);
  CHECK(read.read<float>("/g/none").values.empty());
  read.require_readable("/g/floats");
}

TEST_CASE("strings come back") {
  auto file = Hdf5File::create_in_memory("test");
  const std::string text = "prüfen: ü €\nzwei";
  const std::vector<std::string> many = {"", "a", text};
  file.write_string("text", text, {.description = "some text"});
  file.write_string("empty", "");
  file.write_strings("many", many);
  file.write_strings("nothing", {});
  CHECK(file.read_string("text") == text);
  CHECK(file.read_string("empty").empty());
  CHECK(file.read_strings("many") == many);
  CHECK(file.read_strings("nothing").empty());
  CHECK(file.string_attribute("text", "description") == "some text");
  CHECK_THROWS_AS(file.read<double>("text"), Error);
  CHECK_THROWS_AS(file.read_string("many"), Error);
  const std::string large(300'000, 'x');
  file.write_string("large", large);
  CHECK(file.read_string("large") == large);
}

TEST_CASE("attributes come back and can be replaced") {
  auto file = Hdf5File::create_in_memory("test");
  file.set_attribute("/", "name", "first");
  file.set_attribute("/", "name", "a longer second");
  file.set_attribute("/", "empty", "");
  file.create_group("/a/b");
  file.set_attribute("/a/b", "int", 42);
  file.set_attribute("/a/b", "double", 0.25);
  file.set_attribute("/a/b", "large", std::string(100'000, 'x'));
  CHECK(file.string_attribute("/", "name") == "a longer second");
  CHECK(file.string_attribute("/", "empty").empty());
  CHECK(file.int_attribute("/a/b", "int") == 42);
  CHECK(file.double_attribute("/a/b", "double") == 0.25);
  CHECK(file.string_attribute("/a/b", "large").size() == 100'000);
  CHECK(file.attribute_names("/a/b") == std::vector<std::string>{"double", "int", "large"});
  CHECK(file.has_attribute("/a/b", "int"));
  CHECK_FALSE(file.has_attribute("/a/b", "other"));
  CHECK_THROWS_AS(file.int_attribute("/a/b", "double"), Error);
  CHECK_THROWS_AS(file.string_attribute("/a/b", "int"), Error);
  CHECK_THROWS_MATCHES(file.string_attribute("/a/b", "no"), Error,
                       MessageMatches(ContainsSubstring("no attribute no")));
}

TEST_CASE("units and description are attributes of the dataset") {
  auto file = Hdf5File::create_in_memory("test");
  write_scalar(file, "t", 1.5, {.units = "s", .description = "time"});
  CHECK(file.string_attribute("t", "units") == "s");
  CHECK(file.string_attribute("t", "description") == "time");
  CHECK_THROWS_AS(write_scalar(file, "u", 1.5, {.compression = 10}), Error);
}

TEST_CASE("names and existence") {
  auto file = Hdf5File::create_in_memory("test");
  write_scalar(file, "/b/c/d", 1);
  write_scalar(file, "/a", 1);
  CHECK(file.names() == std::vector<std::string>{"a", "b"});
  CHECK(file.names("/b") == std::vector<std::string>{"c"});
  CHECK(file.datasets() == std::vector<std::string>{"/a", "/b/c/d"});
  CHECK(file.exists("/"));
  CHECK(file.exists("/b/c"));
  CHECK_FALSE(file.exists("/b/x/d"));
  CHECK_FALSE(file.exists("/a/x"));  // below a dataset
  CHECK(file.is_group("/b"));
  CHECK_FALSE(file.is_group("/a"));
  CHECK_THROWS_MATCHES(file.read<int>("/b/x"), Error,
                       MessageMatches(ContainsSubstring("no dataset /b/x")));
  CHECK_THROWS_AS(file.read<int>("/b"), Error);
  CHECK_THROWS_MATCHES(write_scalar(file, "/a", 2), Error,
                       MessageMatches(ContainsSubstring("already has /a")));
}

TEST_CASE("nothing is lost silently on reading") {
  auto file = Hdf5File::create_in_memory("test");
  write_scalar(file, "double", 0.5);
  write_scalar<std::int32_t>(file, "int", -1);
  write_scalar<std::uint8_t>(file, "byte", 200);
  CHECK_THROWS_AS(read_scalar<float>(file, "double"), Error);
  CHECK_THROWS_AS(read_scalar<std::int32_t>(file, "double"), Error);
  CHECK_THROWS_AS(read_scalar<std::uint64_t>(file, "int"), Error);
  CHECK_THROWS_AS(read_scalar<std::int8_t>(file, "byte"), Error);
  CHECK(read_scalar<std::int64_t>(file, "int") == -1);
  CHECK(read_scalar<std::int16_t>(file, "byte") == 200);
}

TEST_CASE("wrong sizes are refused") {
  auto file = Hdf5File::create_in_memory("test");
  const std::vector<int> six(6);
  CHECK_THROWS_MATCHES(file.write<int>("a", six, {2, 4}), Error,
                       MessageMatches(ContainsSubstring("got 6 values")));
  file.create_dataset<int>("b", {2, 3});
  CHECK_THROWS_AS(file.write_part<int>("b", {0}, six, {2, 3}), Error);
  CHECK_THROWS_AS(file.write_part<int>("b", {1, 0}, six, {2, 3}), Error);  // beyond the end
  CHECK_THROWS_AS(file.read_slab<int>("b", {1, 0}, {2, 3}), Error);
}

TEST_CASE("files that are absent, no HDF5 or truncated are refused by name") {
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  CHECK_THROWS_MATCHES(Hdf5File::open_read(path), Error,
                       MessageMatches(ContainsSubstring("no such file")));
  spill(path, "plain text");
  CHECK_THROWS_MATCHES(Hdf5File::open_read(path), Error,
                       MessageMatches(ContainsSubstring("a.h5 is not an HDF5 file") &&
                                      ContainsSubstring("signature")));
  {
    auto file = Hdf5File::create(path);
    file.write("x", std::vector<double>(100'000, 1.0));
  }
  const auto whole = slurp(path);
  spill(path, whole.substr(0, whole.size() / 2));
  CHECK_THROWS_MATCHES(Hdf5File::open_read(path), Error,
                       MessageMatches(ContainsSubstring("truncated")));
  CHECK_THROWS_AS(Hdf5File::create(scratch / "no/such/dir/a.h5"), Error);
}

TEST_CASE("a flipped byte is found by the checksum") {
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  std::vector<std::int32_t> values(1000);
  std::iota(values.begin(), values.end(), 1'000'000);
  {
    auto file = Hdf5File::create(path);
    file.write("x", values);
  }
  auto bytes = slurp(path);
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(values.data()), 400));
  REQUIRE(at != std::string::npos);
  bytes[at + 1] = static_cast<char>(bytes[at + 1] ^ 1);
  spill(path, bytes);
  const auto file = Hdf5File::open_read(path);
  CHECK_THROWS_MATCHES(file.read<std::int32_t>("x"), Error,
                       MessageMatches(ContainsSubstring("filter")));
}

TEST_CASE("all of an array is read for its checksums, in parts of any size") {
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  std::vector<double> values(3 * 5 * 7);
  std::iota(values.begin(), values.end(), 1.5);
  {
    auto file = Hdf5File::create(path);
    file.write<double>("x", values, {3, 5, 7}, {.chunk = {1, 1, 4}});
  }
  const auto whole = slurp(path);
  for (const std::int64_t part : {8, 24, 56, 80, 300, 1000}) {
    CAPTURE(part);
    spill(path, whole);
    CHECK_NOTHROW(Hdf5File::open_read(path).require_readable("x", part));
    for (const std::size_t damaged : {0u, 6u, 34u, 50u, 104u}) {
      CAPTURE(damaged);
      auto bytes = whole;
      const auto at =
          bytes.find(std::string(reinterpret_cast<const char*>(&values[damaged]), sizeof(double)));
      REQUIRE(at != std::string::npos);
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      spill(path, bytes);
      CHECK_THROWS_AS(Hdf5File::open_read(path).require_readable("x", part), Error);
    }
  }
  CHECK_THROWS_MATCHES(Hdf5File::open_read(path).require_readable("x", 7), Error,
                       MessageMatches(ContainsSubstring("elements of 8 bytes")));
}

TEST_CASE("sizes that no file can hold are refused by name") {
  CHECK(product({}) == 1);
  CHECK(product({1 << 20, 0, 1 << 30, 1 << 30}) == 0);
  CHECK_THROWS_MATCHES(product({1 << 20, 1 << 30, 1 << 30}), Error,
                       MessageMatches(ContainsSubstring("more elements than can be counted")));
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  const auto make = [&](const std::vector<hsize_t>& sizes) {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const std::vector<hsize_t> chunk(sizes.size(), 1);
    H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
    H5Dclose(H5Dcreate2(file, "x", H5T_NATIVE_INT64, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
  };
  make({hsize_t{1} << 31, hsize_t{1} << 31});  // 2^65 bytes
  CHECK_THROWS_MATCHES(Hdf5File::open_read(path).dims("x"), Error,
                       MessageMatches(ContainsSubstring("x has a dimension of 2147483648") &&
                                      ContainsSubstring("more bytes than can be counted")));
  CHECK_THROWS_AS(Hdf5File::open_read(path).read<std::int64_t>("x"), Error);
  CHECK_THROWS_AS(Hdf5File::open_read(path).require_readable("x"), Error);
  make({1, hsize_t{1} << 40});  // one row, of which nothing is stored
  CHECK_THROWS_MATCHES(
      Hdf5File::open_read(path).require_readable("x"), Error,
      MessageMatches(ContainsSubstring("x should have 8796093022208 bytes (0 are stored)")));
}

TEST_CASE("the image of a file in memory is a file") {
  const Scratch scratch;
  const auto path = scratch / "a.h5";
  auto memory = Hdf5File::create_in_memory("a.h5");
  memory.write("x", std::vector<int>{1, 2, 3});
  const auto bytes = memory.image();
  taper::AtomicFile file(path);
  file.write(bytes);
  file.commit();
  CHECK(Hdf5File::open_read(path).read<int>("x").values == std::vector<int>{1, 2, 3});
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("equal content gives equal bytes") {
  const auto make = [] {
    auto file = Hdf5File::create_in_memory("a.h5");
    file.write("x/y", std::vector<int>(1000, 5), {.compression = 1, .units = "1"});
    file.set_attribute("/", "a", "b");
    return file.image();
  };
  CHECK(make() == make());
}

TEST_CASE("chunks keep the trailing dimensions") {
  using taper::detail::choose_chunk;
  CHECK(choose_chunk({10}, 8) == Dims{10});
  CHECK(choose_chunk({1'000'000}, 8) == Dims{32768});
  CHECK(choose_chunk({1000, 1000}, 4) == Dims{65, 1000});
  CHECK(choose_chunk({5, 1'000'000}, 4) == Dims{1, 65536});
}

TEST_CASE("a dimension scale is attached") {
  auto file = Hdf5File::create_in_memory("a.h5");
  file.write("step", std::vector<std::int64_t>{1, 2});
  file.write("x", std::vector<double>{0.5, 1.5});
  file.write("y", std::vector<double>{0.5, 1.5});
  file.attach_scale("x", 0, "step", "step");
  file.attach_scale("y", 0, "step", "step");
  if (!file.has_attribute("x", "DIMENSION_LIST")) SKIP("HDF5 without its high-level library");
  CHECK(file.string_attribute("step", "CLASS") == "DIMENSION_SCALE");
  CHECK(file.has_attribute("y", "DIMENSION_LIST"));
}
