#include "mbcas/kube/json_cursor.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <vector>

namespace mbcas::kube {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

struct JsonCursor::Context {
  struct Step {
    std::string_view key;  // of an object's member, or
    std::size_t index;     // of an array's element, when key.data() is null
  };
  std::vector<Step> path;
  std::string error;

  void fail(std::string_view reason) {
    if (!error.empty()) return;
    for (const Step& step : path) {
      if (step.key.data() == nullptr) {
        error += fmt::format("[{}]", step.index);
      } else {
        if (!error.empty()) error += '.';
        error += step.key;
      }
    }
    if (!error.empty()) error += ": ";
    error += reason;
  }
  void fail(error_code code) { fail(simdjson::error_message(code)); }
};

namespace {
ondemand::value& asValue(void* value) {
  return *static_cast<ondemand::value*>(value);
}
}  // namespace

bool JsonCursor::failed() const {
  return !context_->error.empty();
}

void JsonCursor::fail(std::string_view reason) {
  context_->fail(reason);
}

// The document itself. The parser has seen that it is an object or an array, and may not be asked
// for its value as anything else.
bool JsonCursor::atRoot() const {
  return context_->path.empty();
}

bool JsonCursor::isNull() {
  if (failed()) return true;
  if (atRoot()) return false;
  bool null = false;
  if (const error_code code = asValue(value_).is_null().get(null)) context_->fail(code);
  return null;
}

void JsonCursor::members(FunctionRef<void(std::string_view, JsonCursor)> visit) {
  if (isNull()) return;
  ondemand::object object;
  if (asValue(value_).get_object().get(object)) return context_->fail("not an object");
  for (auto next : object) {
    ondemand::field field;
    if (const error_code code = std::move(next).get(field)) return context_->fail(code);
    std::string_view key;
    if (const error_code code = field.unescaped_key().get(key)) return context_->fail(code);
    context_->path.push_back({key.data() == nullptr ? std::string_view("") : key, 0});
    visit(key, JsonCursor(&field.value(), context_));
    if (failed()) return;
    context_->path.pop_back();
  }
}

void JsonCursor::elements(FunctionRef<void(JsonCursor)> visit) {
  if (isNull()) return;
  ondemand::array array;
  if (asValue(value_).get_array().get(array)) return context_->fail("not an array");
  std::size_t index = 0;
  for (auto next : array) {
    ondemand::value value;
    if (const error_code code = std::move(next).get(value)) return context_->fail(code);
    context_->path.push_back({{}, index++});
    visit(JsonCursor(&value, context_));
    if (failed()) return;
    context_->path.pop_back();
  }
}

std::string_view JsonCursor::text() {
  if (isNull()) return {};
  std::string_view text;
  if (atRoot() || asValue(value_).get_string().get(text)) context_->fail("not a string");
  return text;
}

std::string_view JsonCursor::scalar() {
  if (isNull()) return {};
  ondemand::json_type type{};
  if (atRoot() || asValue(value_).type().get(type)) {
    context_->fail("not a string or number");
    return {};
  }
  if (type == ondemand::json_type::string) return text();
  if (type != ondemand::json_type::number) {
    context_->fail("not a string or number");
    return {};
  }
  std::string_view token = asValue(value_).raw_json_token();
  token = token.substr(0, token.find_first_of(" \t\r\n"));
  double number = 0;  // consumes the value, and checks it
  if (asValue(value_).get_double().get(number)) context_->fail("not a number");
  return token;
}

std::int64_t JsonCursor::integer() {
  if (isNull()) return 0;
  std::int64_t number = 0;
  if (atRoot() || asValue(value_).get_int64().get(number)) context_->fail("not an integer");
  return number;
}

bool JsonCursor::boolean() {
  if (isNull()) return false;
  bool truth = false;
  if (atRoot() || asValue(value_).get_bool().get(truth)) context_->fail("not true or false");
  return truth;
}

struct JsonParser::Impl {
  ondemand::parser parser;
  JsonCursor::Context context;
};

JsonParser::JsonParser() : impl_(std::make_unique<Impl>()) {}
JsonParser::~JsonParser() = default;
JsonParser::JsonParser(JsonParser&&) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&&) noexcept = default;

Result<void> JsonParser::parse(std::string& text, FunctionRef<void(JsonCursor)> visit) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  JsonCursor::Context& context = impl_->context;
  context.path.clear();
  context.error.clear();
  ondemand::document document;
  if (const error_code code =
          impl_->parser.iterate(text.data(), text.size(), text.capacity()).get(document)) {
    return failure(fmt::format("not JSON: {}", simdjson::error_message(code)));
  }
  ondemand::value root;
  if (document.get_value().get(root)) return failure("not a JSON object or array");
  visit(JsonCursor(&root, &context));
  if (!context.error.empty()) return failure(context.error);
  return {};
}

}  // namespace mbcas::kube
