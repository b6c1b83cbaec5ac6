// SPDX-License-Identifier: Apache-2.0
#include "base/Packing.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"

using namespace taper;

namespace {

enum class Color : std::uint8_t { kRed, kBlue };

struct Leaf {
  std::string name;
  double size = 0.0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.size);
  }
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

// Has no list of its fields: it is copied as it is.
struct Plain {
  std::int64_t a = 0;
  float b = 0.0f;
  friend bool operator==(const Plain&, const Plain&) = default;
};

struct Tree {
  std::filesystem::path place;
  std::vector<Leaf> leaves;
  std::vector<int> rings;
  Color color = Color::kRed;
  bool is_tall = false;
  Plain plain = {};
  std::vector<Plain> plains = {};

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.place, self.leaves, self.rings, self.color, self.is_tall, self.plain,
                    self.plains);
  }
  friend bool operator==(const Tree&, const Tree&) = default;
};

// Names may have any bytes.
Tree example() {
  return {"a/two\nlines",
          {{"", 0.5}, {std::string("x\0y\n", 4), -1.0}},
          {1, 2, 3},
          Color::kBlue,
          true,
          {-5, 0.5f},
          {{1, 2.0f}, {3, 4.0f}}};
}

}  // namespace

TEST_CASE("what is packed comes back") {
  CHECK(unpacked<Tree>(packed(example())) == example());
  CHECK(unpacked<Tree>(packed(Tree{})) == Tree{});
  CHECK(unpacked<std::string>(packed(std::string())).empty());
  CHECK(unpacked<std::int64_t>(packed(std::int64_t{-7})) == -7);
  const std::vector<std::filesystem::path> paths{"a\nb", "", "c d"};
  CHECK(unpacked<std::vector<std::filesystem::path>>(packed(paths)) == paths);
}

TEST_CASE("bytes that end too early or too late are refused") {
  const std::string whole = packed(example());
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(unpacked<Tree>(std::string_view(whole).substr(0, size)), Error);
  CHECK_THROWS_AS(unpacked<Tree>(whole + "x"), Error);
}
