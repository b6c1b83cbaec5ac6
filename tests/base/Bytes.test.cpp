// SPDX-License-Identifier: Apache-2.0
#include "base/Bytes.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"

using namespace taper;

namespace {

struct Pair {
  std::int32_t a;
  double b;
};

std::string example() {
  std::string bytes = "x";  // a writer appends
  ByteWriter out(bytes);
  out.value(std::int8_t{-3});
  out.list(std::vector<std::int32_t>{7, 8, 9});
  out.list(std::vector<float>{});
  out.value(Pair{4, 0.5});
  out.text("two words");
  out.bytes("raw");
  return bytes.substr(1);
}

// What a reader of example() does; true if it comes to the end.
bool read_example(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<std::int32_t> list{1, 2, 3, 4};
  std::vector<float> empty{1.0f};
  const bool good = in.value<std::int8_t>() == -3;
  in.list(list);
  in.list(empty);
  const Pair pair = in.value<Pair>();
  return good && list == std::vector<std::int32_t>{7, 8, 9} && empty.empty() && pair.a == 4 &&
         pair.b == 0.5 && in.text() == "two words" && in.bytes(3) == "raw" && in.done();
}

}  // namespace

TEST_CASE("values, lists and texts come back as they were written") {
  CHECK(read_example(example()));
  CHECK(ByteReader("").done());
}

TEST_CASE("bytes that end too early are refused wherever they end") {
  const std::string whole = example();
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(read_example(std::string_view(whole).substr(0, size)), Error);
}

TEST_CASE("a list longer than the message is refused before memory is taken for it") {
  for (const std::int64_t count :
       {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 60, INT64_MAX}) {
    std::string bytes;
    ByteWriter out(bytes);
    out.value(count);
    for (int i = 0; i < 3; ++i) out.value(i);
    ByteReader in(bytes);
    std::vector<int> list;
    CHECK_THROWS_AS(in.list(list), Error);
  }
}
