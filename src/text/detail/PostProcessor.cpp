// SPDX-License-Identifier: Apache-2.0
#include "text/detail/PostProcessor.hpp"

#include <nlohmann/json.hpp>

namespace taper::detail {
namespace {

std::vector<int> special_ids(const Component& component, const std::string& name) {
  const Component entry = component.child("special_tokens").child(name);
  const auto& ids = entry.child("ids").node();
  if (!ids.is_array()) component.fail("special token '" + name + "' of the template has no ids");
  std::vector<int> numbers;
  for (const auto& id : ids)
    numbers.push_back(component.id(id, "special token '" + name + "' of the template"));
  return numbers;
}

}  // namespace

void PostProcessor::add_template(const Component& component) {
  Template step;
  bool seen_text = false;
  for (const auto& item : component.children("single")) {
    if (item.has("Sequence")) {
      if (seen_text) component.fail("a template with the text twice is not supported");
      seen_text = true;
    } else {
      auto& side = seen_text ? step.after : step.before;
      const auto ids = special_ids(component, item.child("SpecialToken").text("id"));
      side.insert(side.end(), ids.begin(), ids.end());
    }
  }
  if (!seen_text) component.fail("a template without the text is not supported");
  steps_.push_back(std::move(step));
}

void PostProcessor::add(const Component& component) {
  if (component.is_null()) return;
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const auto& child : component.children("processors")) add(child);
  } else if (type == "TemplateProcessing") {
    add_template(component);
  } else if (type != "ByteLevel") {
    component.fail_unsupported({"TemplateProcessing", "ByteLevel", "Sequence"});
  }
}

std::vector<int> PostProcessor::apply(std::vector<int> ids) const {
  for (const Template& step : steps_) {
    ids.insert(ids.begin(), step.before.begin(), step.before.end());
    ids.insert(ids.end(), step.after.begin(), step.after.end());
  }
  return ids;
}

}  // namespace taper::detail
