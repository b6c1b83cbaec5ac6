// SPDX-License-Identifier: Apache-2.0
#include "param/detail/XmlReader.hpp"

#include <Teuchos_ParameterList.hpp>
#include <Teuchos_XMLParameterListCoreHelpers.hpp>
#include <catch2/catch_test_macros.hpp>

#include "ShowTypes.hpp"
#include "support/Messages.hpp"

namespace taper::param::detail {
namespace {

std::string wrap(const std::string& inside) {
  return "<ParameterList name=\"run\">\n" + inside + "\n</ParameterList>\n";
}

Teuchos::ParameterList read(const std::string& text) {
  Teuchos::ParameterList list;
  read_xml(text, "run.xml", list);
  return list;
}

std::string problem(const std::string& text) {
  return test::message_of([&] { read(text); });
}

std::string parameter(const std::string& type, const std::string& value) {
  return wrap("<Parameter name=\"x\" type=\"" + type + "\" value=\"" + value + "\"/>");
}

const char* const kEveryType = R"xml(<ParameterList name="run">
  <ParameterList name="Rollout">
    <Parameter name="Temperature" type="int" value="1"/>
    <Parameter name="Top P" type="double" value="0.9"/>
    <Parameter name="Mode" type="string" value="static"/>
    <Parameter name="On" type="bool" value="true"/>
    <Parameter name="Seed" type="long long" value="12345678901"/>
    <Parameter name="Degrees" type="Array(int)" value="{1, 2}"/>
    <Parameter name="Stop" type="Array(string)" value="{a, b}"/>
    <ParameterList name="Deep"><Parameter name="z" type="double" value="1e-6"/></ParameterList>
  </ParameterList>
</ParameterList>
)xml";

TEST_CASE("XML is read as Teuchos reads it") {
  const std::string text = kEveryType;
  const auto theirs = Teuchos::getParametersFromXmlString(text);
  const auto ours = read(text);
  CHECK(test::to_stable_text(ours) == test::to_stable_text(*theirs));
  CHECK(test::show_types(ours) == test::show_types(*theirs));
}

TEST_CASE("an empty array is an empty list") {
  CHECK(test::to_stable_text(read(parameter("Array(int)", "{}"))) == "x = []\n");
}

TEST_CASE("values that do not fit their type are refused") {
  CHECK(problem(parameter("int", "u")) == "run.xml: x is \"u\" (its attribute type says int)");
  CHECK(problem(parameter("int", "1.5")) == "run.xml: x is \"1.5\" (its attribute type says int)");
  CHECK(problem(parameter("double", "")) == "run.xml: x is \"\" (its attribute type says double)");
  CHECK(problem(parameter("bool", "1")) == "run.xml: x is \"1\" (its attribute type says bool)");
  CHECK(problem(parameter("Array(int)", "{1,a}")) ==
        "run.xml: x is \"a\" (its attribute type says int)");
  CHECK(problem(parameter("Array(int)", "1,2")) ==
        "run.xml: x is \"1,2\" (an array is written {1, 2})");
  CHECK(problem(parameter("complex", "1")) ==
        "run.xml: x has the type complex (known are int, long long, double, bool, string and Array "
        "of these)");
}

TEST_CASE("broken XML is refused") {
  CHECK(problem("<ParameterList name=\"a\">\n <Parameter name=\"x\" type=\"int\" value=\"1\">\n"
                "</ParameterList>\n")
            .starts_with("run.xml: cannot be read as XML (XML parse error at line 3: "));
  CHECK(problem("").starts_with("run.xml: cannot be read as"));
  CHECK(problem("<Other/>") ==
        "run.xml: cannot be read as a run file (its first element must be "
        "<ParameterList>)");
  CHECK(problem(wrap("<Thing/>")) ==
        "run.xml: <Thing> is unknown (a run file holds <ParameterList> and <Parameter>)");
  CHECK(problem(wrap("<Parameter name=\"x\" type=\"int\"/>")) ==
        "run.xml: a <Parameter> in x lacks its attribute value");
  CHECK(problem(wrap("<ParameterList/>")) ==
        "run.xml: a <ParameterList> in the top level lacks its attribute name");
  const std::string x = "<Parameter name=\"x\" type=\"int\" value=\"1\"/>";
  CHECK(problem(wrap(x + x)) == "run.xml: x appears twice");
}

}  // namespace
}  // namespace taper::param::detail
