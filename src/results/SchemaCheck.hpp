// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace taper {

// What came of holding a file against the schema of its format.
struct SchemaReport {
  std::string format;         // empty if the file has none that is known
  std::int64_t version = 0;   // of the file
  std::int64_t datasets = 0;  // looked at
  // One line each: "out/run.h5: /metrics/actor/lr has 4 rows (5 in /metrics/step)".
  std::vector<std::string> faults;
  std::vector<std::string> notes;  // no faults: datasets that the schema does not know
};

// Holds an HDF5 file against its schema (FileSchema.hpp): format and version, attributes, and of
// each dataset presence, type, sizes that agree, unit and description, checksum and compression,
// ascending iterations, offsets that fit; reads all of it, so that every checksum is verified.
// Throws nothing for bad files: what is wrong is in the report. On one rank.
SchemaReport check_schema(const std::filesystem::path& file);

}  // namespace taper
