// SPDX-License-Identifier: Apache-2.0
//
// A run file in memory, with where each value came from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace Teuchos {  // NOLINT(readability-identifier-naming): theirs
class ParameterList;
}

namespace taper::param {

class ParamFile {
 public:
  // Without a file: only what set() adds.
  ParamFile();
  ~ParamFile();
  ParamFile(ParamFile&&) noexcept;
  ParamFile& operator=(ParamFile&&) noexcept;

  // Reads YAML (.yaml, .yml). Throws Error(kBadInput) naming file and line.
  static ParamFile read(const std::string& path);

  // As read(), from the text of a file that has the given name: one rank reads, all ranks parse.
  static ParamFile parse(const std::string& text, const std::string& name);

  // Applies `Section/Name=value` over the file; the value is written as in YAML. A name that no
  // schema knows is refused when the schema reads. Throws Error(kBadInput).
  void set(const std::string& assignment);

  // Sets a value, written as in YAML, unless the file or an assignment has one; `source` is where()
  // it comes from. False if there is one. Throws Error(kBadInput).
  bool set_default(const std::string& path, const std::string& value, const std::string& source);

  const std::string& name() const;  // as in messages: quoted if it has blanks
  const std::string& text() const;  // the file as it was read, without set()
  const Teuchos::ParameterList& list() const;
  // Every value with its path "Section/Name", as YAML writes it, in the order of the file.
  std::vector<std::pair<std::string, std::string>> values() const;

  // "run.yaml line 7", "--set Rollout/Temperature=2", the source of a default (also of a section
  // that only assignments have made), or the name of the file.
  std::string where(const std::string& path) const;

 private:
  struct Content;
  void put(const std::string& path, const std::string& value, const std::string& source);

  std::unique_ptr<Content> content_;
};

}  // namespace taper::param
