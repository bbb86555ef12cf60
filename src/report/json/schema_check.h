// SchemaCheck: checks JSON against the part of JSON Schema that docs/report.schema.json uses
// ($ref within the document, type, const, enum, minimum, maximum, properties, required,
// additionalProperties, propertyNames, items, minItems, maxItems). Any other keyword is a
// violation, so that the schema cannot ask for what is not checked. Test support only.
#pragma once

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

namespace assay::report {

class SchemaCheck {
 public:
  explicit SchemaCheck(const nlohmann::json& schema) : root_(schema) {}

  // The first violation as "path: why"; empty when there is none.
  std::string violation(const nlohmann::json& value) const { return at(root_, value, "$"); }

 private:
  using json = nlohmann::json;

  static bool is_type(const std::string& type, const json& value) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_boolean()
           : type == "null"    ? value.is_null()
           : type == "integer" ? value.is_number_integer()
                               : type == "number" && value.is_number();
  }

  static bool is_of(const json& type, const json& value) {
    if (type.is_string()) return is_type(type, value);
    for (const json& one : type) {
      if (is_type(one, value)) return true;
    }
    return false;
  }

  std::string at(const json& schema, const json& value, const std::string& path) const {
    for (const auto& [keyword, rule] : schema.items()) {
      std::string why = check(schema, keyword, rule, value, path);
      if (!why.empty()) return why;
    }
    return "";
  }

  std::string check(const json& schema, const std::string& keyword, const json& rule,
                    const json& value, const std::string& path) const {
    auto fails = [&](bool bad) { return bad ? path + ": " + keyword + " " + rule.dump() : ""; };
    if (keyword == "$ref") {
      return at(root_.at(json::json_pointer(rule.get<std::string>().substr(1))), value, path);
    }
    if (keyword == "type") return fails(!is_of(rule, value));
    if (keyword == "const") return fails(value != rule);
    if (keyword == "enum") return fails(std::find(rule.begin(), rule.end(), value) == rule.end());
    if (keyword == "minimum") return fails(value.is_number() && value < rule);
    if (keyword == "maximum") return fails(value.is_number() && value > rule);
    if (keyword == "minItems") return fails(value.size() < rule.get<size_t>());
    if (keyword == "maxItems") return fails(value.size() > rule.get<size_t>());
    if (keyword == "items") return items(rule, value, path);
    if (keyword == "required") return required(rule, value, path);
    if (keyword == "properties") return properties(schema, value, path);
    if (keyword == "propertyNames") return names(rule, value, path);
    bool known = keyword == "additionalProperties" || keyword == "description" ||
                 keyword == "title" || keyword == "$schema" || keyword == "$defs";
    if (keyword == "additionalProperties" && !schema.contains("properties")) {
      return properties(schema, value, path);
    }
    return known ? "" : path + ": the check does not know " + keyword;
  }

  std::string items(const json& rule, const json& value, const std::string& path) const {
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
      std::string why = at(rule, value[i], path + "[" + std::to_string(i) + "]");
      if (!why.empty()) return why;
    }
    return "";
  }

  static std::string required(const json& rule, const json& value, const std::string& path) {
    for (const json& name : value.is_object() ? rule : json::array()) {
      if (!value.contains(name.get<std::string>())) return path + ": lacks " + name.dump();
    }
    return "";
  }

  std::string names(const json& rule, const json& value, const std::string& path) const {
    for (const auto& [name, unused] : value.items()) {
      std::string why = at(rule, json(name), path + " name");
      if (!why.empty()) return why;
    }
    return "";
  }

  std::string properties(const json& schema, const json& value, const std::string& path) const {
    json known = schema.value("properties", json::object());
    json others = schema.value("additionalProperties", json(true));
    for (const auto& [name, part] : value.items()) {
      std::string why;
      if (known.contains(name)) {
        why = at(known[name], part, path + "." + name);
      } else if (others.is_object()) {
        why = at(others, part, path + "." + name);
      } else if (others == false) {
        why = path + ": unexpected " + name;
      }
      if (!why.empty()) return why;
    }
    return "";
  }

  const json& root_;
};

}  // namespace assay::report
