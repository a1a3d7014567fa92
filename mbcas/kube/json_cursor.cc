#include "mbcas/kube/json_cursor.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "mbcas/kube/json_document.h"

namespace mbcas::kube {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;

void JsonCursor::members(VisitMember visit) {
  if (!isNull()) document_->members(value_, visit);
}
void JsonCursor::elements(VisitElement visit) {
  if (!isNull()) document_->elements(value_, visit);
}
std::string_view JsonCursor::text() {
  return isNull() ? std::string_view() : document_->text(value_);
}
std::string_view JsonCursor::scalar() {
  return isNull() ? std::string_view() : document_->scalar(value_);
}
std::int64_t JsonCursor::integer() {
  return isNull() ? 0 : document_->integer(value_);
}
bool JsonCursor::boolean() {
  return !isNull() && document_->boolean(value_);
}
bool JsonCursor::isNull() {
  return document_->failed() || document_->isNull(value_);
}
void JsonCursor::fail(std::string_view reason) {
  document_->fail(reason);
}

void JsonCursor::Document::fail(std::string_view reason) {
  if (failed()) return;
  for (const Step& step : path_) {
    if (step.key.data() == nullptr) {
      error_ += fmt::format("[{}]", step.index);
    } else {
      if (!error_.empty()) error_ += '.';
      error_ += step.key;
    }
  }
  if (!error_.empty()) error_ += ": ";
  error_ += reason;
}

void JsonCursor::Document::visitMember(std::string_view key, void* value, VisitMember visit) {
  path_.push_back({key.data() == nullptr ? std::string_view("") : key, 0});
  visit(key, JsonCursor(value, this));
  if (!failed()) path_.pop_back();
}

void JsonCursor::Document::visitElement(std::size_t index, void* value, VisitElement visit) {
  path_.push_back({{}, index});
  visit(JsonCursor(value, this));
  if (!failed()) path_.pop_back();
}

class SimdjsonDocument final : public JsonCursor::Document {
 public:
  Result<void> visitRoot(ondemand::value& root, FunctionRef<void(JsonCursor)> visit) {
    begin();
    visit(JsonCursor(&root, this));
    return outcome();
  }

  bool isNull(void* value) override {
    if (atRoot()) return false;
    bool null = false;
    if (const error_code code = as(value).is_null().get(null)) fail(code);
    return null;
  }

  void members(void* value, JsonCursor::VisitMember visit) override {
    ondemand::object object;
    if (as(value).get_object().get(object)) return fail("not an object");
    for (auto next : object) {
      ondemand::field field;
      if (const error_code code = std::move(next).get(field)) return fail(code);
      std::string_view key;
      if (const error_code code = field.unescaped_key().get(key)) return fail(code);
      visitMember(key, &field.value(), visit);
      if (failed()) return;
    }
  }

  void elements(void* value, JsonCursor::VisitElement visit) override {
    ondemand::array array;
    if (as(value).get_array().get(array)) return fail("not an array");
    std::size_t index = 0;
    for (auto next : array) {
      ondemand::value element;
      if (const error_code code = std::move(next).get(element)) return fail(code);
      visitElement(index++, &element, visit);
      if (failed()) return;
    }
  }

  std::string_view text(void* value) override {
    std::string_view text;
    if (atRoot() || as(value).get_string().get(text)) fail("not a string");
    return text;
  }

  std::string_view scalar(void* value) override {
    ondemand::json_type type{};
    if (atRoot() || as(value).type().get(type)) {
      fail("not a string or number");
      return {};
    }
    if (type == ondemand::json_type::string) return text(value);
    if (type != ondemand::json_type::number) {
      fail("not a string or number");
      return {};
    }
    std::string_view token = as(value).raw_json_token();
    token = token.substr(0, token.find_first_of(" \t\r\n"));
    double number = 0;  // consumes the value, and checks it
    if (as(value).get_double().get(number)) fail("not a number");
    return token;
  }

  std::int64_t integer(void* value) override {
    std::int64_t number = 0;
    if (atRoot() || as(value).get_int64().get(number)) fail("not an integer");
    return number;
  }

  bool boolean(void* value) override {
    bool truth = false;
    if (atRoot() || as(value).get_bool().get(truth)) fail("not true or false");
    return truth;
  }

 private:
  static ondemand::value& as(void* value) { return *static_cast<ondemand::value*>(value); }
  // The document itself. The parser has seen that it is an object or an array, and may not be asked
  // for its value as anything else.
  bool atRoot() const { return path().empty(); }
  using JsonCursor::Document::fail;
  void fail(error_code code) { fail(simdjson::error_message(code)); }
};

struct JsonParser::Impl {
  ondemand::parser parser;
  SimdjsonDocument document;
};

JsonParser::JsonParser() : impl_(std::make_unique<Impl>()) {}
JsonParser::~JsonParser() = default;
JsonParser::JsonParser(JsonParser&&) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&&) noexcept = default;

Result<void> JsonParser::parse(std::string& text, FunctionRef<void(JsonCursor)> visit) {
  // The parser's buffers are several times as large as the largest document so far.
  constexpr std::size_t kKeptBuffer = 256 << 10;
  if (impl_->parser.capacity() > kKeptBuffer && text.size() < kKeptBuffer / 2) {
    impl_->parser = ondemand::parser();
  }
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  ondemand::document document;
  if (const error_code code =
          impl_->parser.iterate(text.data(), text.size(), text.capacity()).get(document)) {
    return failure(fmt::format("not JSON: {}", simdjson::error_message(code)));
  }
  ondemand::value root;
  if (document.get_value().get(root)) return failure("not a JSON object or array");
  return impl_->document.visitRoot(root, visit);
}

}  // namespace mbcas::kube
