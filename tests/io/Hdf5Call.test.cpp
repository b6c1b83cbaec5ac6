// SPDX-License-Identifier: Apache-2.0
#include "io/Hdf5Call.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <type_traits>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

static_assert(!std::is_copy_constructible_v<Hdf5Id>);
static_assert(std::is_nothrow_move_constructible_v<Hdf5Id>);

namespace {

Hdf5Id create(const std::filesystem::path& path) {
  return {TAPER_HDF5_CALL(path.string(),
                          H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
          H5Fclose};
}

bool is_valid(hid_t id) {
  return TAPER_HDF5_CALL("a test", H5Iis_valid(id)) > 0;
}

// What HDF5 would call to print an error of this thread.
H5E_auto2_t printer() {
  H5E_auto2_t function = nullptr;
  void* data = nullptr;
  REQUIRE(H5Eget_auto2(H5E_DEFAULT, &function, &data) >= 0);  // bare: the macro changes it
  return function;
}

}  // namespace

TEST_CASE("a good call returns what HDF5 returned, evaluated once") {
  int calls = 0;
  const auto seven = [&] {
    ++calls;
    return 7;
  };
  CHECK(TAPER_HDF5_CALL("a.h5", seven()) == 7);
  CHECK(calls == 1);
}

TEST_CASE("a failed call names file, function, HDF5's reason and the rank") {
  const test::Scratch scratch;
  const std::string path = (scratch / "missing.h5").string();
  try {
    TAPER_HDF5_CALL(path, H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    FAIL("no exception");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::kFailure);
    CHECK_THAT(error.what(), ContainsSubstring("HDF5 failed on " + path + " (H5Fopen: ") &&
                                 ContainsSubstring("No such file or directory") &&
                                 ContainsSubstring(") on rank 0"));
  }
}

TEST_CASE("a failed call without a reason of HDF5 says so, after another failure, too") {
  const auto fail = [] { return -1; };
  for (int i = 0; i < 2; ++i) {
    try {
      TAPER_HDF5_CALL("my file.h5", fail());
      FAIL("no exception");
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("'my file.h5' (fail: HDF5 gave no reason)"));
    }
    CHECK_THROWS_AS(TAPER_HDF5_CALL("a.h5", H5Fopen("", H5F_ACC_RDONLY, H5P_DEFAULT)), Error);
  }
}

TEST_CASE("HDF5 prints nothing while it is called, and as before afterwards") {
  const H5E_auto2_t before = printer();
  REQUIRE(before != nullptr);  // or there was nothing to test
  H5E_auto2_t meanwhile = before;
  const auto ask = [&](int result) {
    meanwhile = printer();
    return result;
  };
  TAPER_HDF5_CALL("a.h5", ask(0));
  CHECK(meanwhile == nullptr);
  CHECK(printer() == before);
  CHECK_THROWS_AS(TAPER_HDF5_CALL("a.h5", ask(-1)), Error);
  CHECK(printer() == before);
}

TEST_CASE("an identifier is closed once, by its last owner") {
  const test::Scratch scratch;
  hid_t first = H5I_INVALID_HID, second = H5I_INVALID_HID;
  {
    Hdf5Id file = create(scratch / "a.h5");
    REQUIRE(file.is_open());
    first = file.get();
    Hdf5Id moved = std::move(file);
    CHECK(!file.is_open());  // NOLINT(bugprone-use-after-move): that is the question
    CHECK(moved.get() == first);
    Hdf5Id other = create(scratch / "b.h5");
    second = other.get();
    moved = std::move(other);
    CHECK(moved.get() == second);
    CHECK(is_valid(second));
  }
  CHECK(!is_valid(first));
  CHECK(!is_valid(second));
}

TEST_CASE("a released identifier stays open, and one that was reset is closed at once") {
  const test::Scratch scratch;
  hid_t id = H5I_INVALID_HID;
  {
    Hdf5Id file = create(scratch / "a.h5");
    id = file.release();
    CHECK(!file.is_open());
  }
  REQUIRE(is_valid(id));
  Hdf5Id again(id, H5Fclose);
  again.reset();
  CHECK(!again.is_open());
  CHECK(!is_valid(id));
  again.reset();  // nothing is left to close
}
