// SPDX-License-Identifier: Apache-2.0
//
// The arguments of one program or subcommand: declared once with names, values and docs; parsing
// and --help follow.
//
//   param::CommandLine line("taper train", "Trains a model as a run file says.");
//   line.positional("RUN", options.run_file, "the run file").required();
//   line.repeated("set", options.assignments, "NAME=VALUE", "overrides a value of the run file");
//   line.integer("seed", options.seed, "S", "seed of all random numbers").at_least(0);
//   line.flag("check", options.check, "validates the input and exits");
//   if (line.parse_or_print_help(argc, argv)) return 0;
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "param/detail/Binding.hpp"

namespace taper::param {

namespace detail {
struct Option;
}

class CommandLine {
 public:
  // Options just declared; refines what they accept.
  class Declared {
   public:
    explicit Declared(detail::Option& option) : option_(&option) {}

    Declared& at_least(double low);
    Declared& at_most(double high);
    Declared& above(double low);
    Declared& required();

   private:
    detail::Option* option_;
  };

  enum class Next { kRun, kShowHelp };

  CommandLine(std::string program, std::string purpose);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // An argument without a name, in order of declaration.
  Declared positional(const std::string& label, std::string& member, const std::string& doc);

  // --name VALUE or --name=VALUE. label stands for the value in the help. The member's value at the
  // time of the declaration is the default. std::vector members take items separated by commas.
  template <class T>
  Declared number(const std::string& name, T& member, const std::string& label,
                  const std::string& doc) {
    return add(name, label, doc, detail::make_number(member));
  }
  template <class T>
  Declared integer(const std::string& name, T& member, const std::string& label,
                   const std::string& doc) {
    return add(name, label, doc, detail::make_integer(member));
  }
  template <class T>
  Declared text(const std::string& name, T& member, const std::string& label,
                const std::string& doc) {
    return add(name, label, doc, detail::make_text(member));
  }
  template <class T>
  Declared list(const std::string& name, std::vector<T>& member, const std::string& label,
                const std::string& doc) {
    return add(name, label, doc, detail::make_list(member));
  }
  template <class T>
  Declared choice(const std::string& name, T& member, const std::string& doc,
                  std::vector<std::pair<std::string, std::type_identity_t<T>>> options) {
    return add(name, "", doc, detail::make_choice(member, std::move(options)));
  }
  // --name, or --name=off.
  Declared flag(const std::string& name, bool& member, const std::string& doc);

  // May be given several times; each adds one text, commas and all.
  Declared repeated(const std::string& name, std::vector<std::string>& member,
                    const std::string& label, const std::string& doc);

  // Fills the members from the arguments after the program's (and subcommand's) name. Throws
  // Error(kBadInput). Asked for --help, it stops there and checks nothing.
  Next parse(const std::vector<std::string>& arguments);
  // The same of main()'s arguments, argv[0] is skipped. Asked for --help, it prints it to stdout
  // and returns true: the program ends.
  bool parse_or_print_help(int argc, const char* const* argv);

  // Whether the last parse() met this option.
  bool given(const std::string& name) const;

  std::string help() const;

 private:
  Declared add(const std::string& name, const std::string& label, const std::string& doc,
               std::unique_ptr<detail::Binding> binding);
  detail::Option& find(const std::string& name) const;
  void take(detail::Option& option, const std::string& text) const;
  void take_positional(std::size_t position, const std::string& text) const;
  void check_required() const;
  [[noreturn]] void fail(const std::string& problem) const;

  std::string program_;
  std::string purpose_;
  std::vector<std::unique_ptr<detail::Option>> positionals_;
  std::vector<std::unique_ptr<detail::Option>> options_;
};

}  // namespace taper::param
