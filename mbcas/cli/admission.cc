#include "mbcas/cli/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "mbcas/base/json_writer.h"
#include "mbcas/kube/json_cursor.h"

namespace mbcas::cli {

extern const std::string_view kInstalledAdmission;  // the files, one after the other, in YAML

namespace {

using kube::JsonCursor;

std::string joined(JsonCursor list) {
  std::vector<std::string> texts;
  list.elements([&](JsonCursor text) { texts.emplace_back(text.text()); });
  return fmt::format("{}", fmt::join(texts, ","));
}

class Reader {
 public:
  AdmissionObject read(JsonCursor object) {
    object.members([&](std::string_view key, JsonCursor value) {
      if (key == "metadata") {
        value.members([&](std::string_view name, JsonCursor text) {
          if (name == "name") object_.name = text.text();
        });
      }
      if (key == "spec") {
        value.members([&](std::string_view field, JsonCursor part) { readField(field, part); });
      }
    });
    return std::move(object_);
  }

 private:
  void add(std::string_view field, std::string value) {
    object_.fields[std::string(field)].push_back(std::move(value));
  }

  void readField(std::string_view field, JsonCursor value) {
    if (field == "failurePolicy" || field == "policyName") {
      add(field, std::string(value.text()));
    } else if (field == "validationActions") {
      add(field, joined(value));
    } else if (field == "matchConstraints" || field == "matchResources") {
      value.members([&](std::string_view part, JsonCursor of) { readMatch(part, of); });
    } else if (field == "matchConditions" || field == "variables" || field == "validations") {
      value.elements([&](JsonCursor rule) {
        std::string name;
        std::string expression;
        rule.members([&](std::string_view key, JsonCursor text) {
          if (key == "name") name = text.text();
          if (key == "expression") expression = text.text();
        });
        add(field, fmt::format("{}: {}", name, expression));
      });
    } else if (field == "paramKind" || field == "paramRef") {
      add(field, "");
    }
  }

  void readMatch(std::string_view part, JsonCursor value) {
    if (part == "resourceRules" || part == "excludeResourceRules") {
      value.elements([&](JsonCursor rule) {
        std::vector<std::string> fields;
        rule.members([&](std::string_view key, JsonCursor of) {
          if (key != "scope") {
            fields.push_back(fmt::format("{} {}", key, joined(of)));
          } else if (of.text() != "*") {
            fields.emplace_back("scope");
          }
        });
        std::ranges::sort(fields);
        add(part, fmt::format("{}", fmt::join(fields, "; ")));
      });
    } else if (part == "namespaceSelector" || part == "objectSelector") {
      // The server puts an empty one, which selects everything.
      bool any = false;
      value.members([&](std::string_view, JsonCursor) { any = true; });
      if (any) add(part, "");
    }
  }

  AdmissionObject object_;
};

void writeJson(JsonWriter& json, const YAML::Node& node) {
  if (node.IsMap()) {
    json.beginObject();
    for (const auto& member : node) {
      json.key(member.first.Scalar());
      writeJson(json, member.second);
    }
    json.endObject();
  } else if (node.IsSequence()) {
    json.beginArray();
    for (const auto& element : node) writeJson(json, element);
    json.endArray();
  } else {
    json.value(node.Scalar());
  }
}

}  // namespace

std::vector<std::string> differences(const AdmissionObject& some, const AdmissionObject& other) {
  std::vector<std::string> fields;
  for (const auto& [field, values] : some.fields) {
    const auto found = other.fields.find(field);
    if (found == other.fields.end() || found->second != values) fields.push_back(field);
  }
  for (const auto& [field, values] : other.fields) {
    if (!some.fields.contains(field)) fields.push_back(field);
  }
  return fields;
}

AdmissionObjects installedAdmission(std::string_view system_namespace) {
  std::string text(kInstalledAdmission);
  constexpr std::string_view kUsual = "mbcas-system";
  for (std::size_t at = text.find(kUsual); at != std::string::npos;
       at = text.find(kUsual, at + system_namespace.size())) {
    text.replace(at, kUsual.size(), system_namespace);
  }
  AdmissionObjects objects;
  for (const YAML::Node& document : YAML::LoadAll(text)) {
    const std::string kind = document["kind"].as<std::string>("");
    const bool policy = kind == "ValidatingAdmissionPolicy";
    if (!policy && kind != "ValidatingAdmissionPolicyBinding") continue;
    std::string json;
    JsonWriter writer(json);
    writeJson(writer, document);
    kube::JsonParser parser;
    const Result<void> parsed = parser.parse(json, [&](JsonCursor root) {
      (policy ? objects.policies : objects.bindings).push_back(Reader().read(root));
    });
    assert(parsed && "it is JSON of our own");
    static_cast<void>(parsed);
  }
  return objects;
}

Result<std::vector<AdmissionObject>> parseAdmissionList(std::string list) {
  std::vector<AdmissionObject> objects;
  kube::JsonParser parser;
  const Result<void> parsed = parser.parse(list, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor items) {
      if (key != "items") return;
      items.elements([&](JsonCursor item) { objects.push_back(Reader().read(item)); });
    });
  });
  if (!parsed) return failure(parsed.error());
  return objects;
}

}  // namespace mbcas::cli
