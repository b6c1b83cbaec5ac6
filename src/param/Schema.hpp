// SPDX-License-Identifier: Apache-2.0
//
// Describes the parameters of options structs once; reading, checking, help and dumps follow.
//
//   void describe(param::Section& s, RolloutOptions& o) {
//     auto r = s.section("Rollout", "How responses are generated");
//     r.number("Temperature", o.temperature, "Softmax temperature; 0 is greedy").at_least(0);
//     r.choice("Mode", o.mode, "Layout of the ranks", {{"static", Mode::kStatic}, ...});
//     r.check([&o] { return o.problems(); });
//   }
//
// A member's value at the time of its description is the default. The structs must outlive the
// schema and stay where they are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "param/ParamFile.hpp"
#include "param/detail/Binding.hpp"

namespace taper::param {

namespace detail {
struct ParameterNode;
struct SectionNode;
}  // namespace detail

// A parameter just described; refines what values are accepted. Limits hold for each item of a
// list. A call that makes no sense for the kind of parameter throws.
class Parameter {
 public:
  explicit Parameter(detail::ParameterNode& node) : node_(&node) {}

  Parameter& at_least(double low);
  Parameter& at_most(double high);
  Parameter& above(double low);
  Parameter& below(double high);
  Parameter& between(double low, double high) { return at_least(low).at_most(high); }
  Parameter& not_empty();  // texts and lists

 private:
  detail::Limits& limits();

  detail::ParameterNode* node_;
};

// A named group of parameters; a handle, cheap to copy.
class Section {
 public:
  explicit Section(detail::SectionNode& node) : node_(&node) {}

  // A name that was described before gives the same section, so that modules can share one.
  Section section(const std::string& name, const std::string& doc = "");

  // float or double.
  template <class T>
  Parameter number(const std::string& name, T& member, const std::string& doc) {
    return add(name, doc, detail::make_number(member));
  }
  // Any integer type; 1e3 is an integer, 1.5 is not.
  template <class T>
  Parameter integer(const std::string& name, T& member, const std::string& doc) {
    return add(name, doc, detail::make_integer(member));
  }
  Parameter text(const std::string& name, std::string& member, const std::string& doc) {
    return add(name, doc, detail::make_text(member));
  }
  Parameter flag(const std::string& name, bool& member, const std::string& doc) {
    return add(name, doc, detail::make_flag(member));
  }
  // std::vector of a number, an integer or a text type.
  template <class T>
  Parameter list(const std::string& name, std::vector<T>& member, const std::string& doc) {
    return add(name, doc, detail::make_list(member));
  }
  // One of named values, mostly of an enum.
  template <class T>
  Parameter choice(const std::string& name, T& member, const std::string& doc,
                   std::vector<std::pair<std::string, std::type_identity_t<T>>> options) {
    return add(name, doc, detail::make_choice(member, std::move(options)));
  }

  // What an entry of a file says of one of its parameters, as text; empty if it says nothing.
  using Peek = std::function<std::string(const std::string& parameter)>;
  using DescribeEntry = std::function<void(Section entry, const std::string& name, const Peek&)>;

  // A section whose sections are named by the file. `describe` is called for each of them, in the
  // order of the file, before it is read: its parameters may depend on what the entry says. Their
  // members must stay where they are when more entries come.
  void entries(const std::string& name, const std::string& doc, DescribeEntry describe);

  // What the section is about is off unless the file has the section, if only its name: then
  // `given` becomes true. Dumps leave it out while it is off.
  void optional(bool& given);

  // Called once the section was read without a problem; what it returns is reported with the rest.
  // A problem that names parameters by their paths is reported with where they were set.
  void check(std::function<std::vector<std::string>()> problems);

 private:
  Parameter add(const std::string& name, const std::string& doc,
                std::unique_ptr<detail::Binding> binding);

  detail::SectionNode* node_;
};

class Schema : public Section {
 public:
  Schema();
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // Fills the described members; those that the file does not name keep their values. Throws one
  // Error(kBadInput) with all problems of the file.
  void read(const ParamFile& file);

  // As read(), but returns the problems: members without one are filled, the others keep their
  // values.
  [[nodiscard]] std::vector<std::string> read_and_list_problems(const ParamFile& file);

  // The value of "Section/Name" that the described member has now, for scripts: texts without
  // quotes, all else as YAML writes it. Throws Error(kBadInput) naming the nearest if there is
  // no such parameter.
  std::string current_value(const std::string& path) const;

  // A complete run file: docs, kinds and limits stand as comments above each key.
  std::string defaults_yaml() const;
  std::string current_yaml() const;

 private:
  explicit Schema(std::unique_ptr<detail::SectionNode> root);

  std::unique_ptr<detail::SectionNode> root_;
};

}  // namespace taper::param
