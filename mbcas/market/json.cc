#include "mbcas/market/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "mbcas/base/json_writer.h"

namespace mbcas::market {
namespace {

enum class Field { kCapacity, kObjective, kPods, kId, kBid, kWeight, kMin, kMax, kGuarantee };

struct FieldName {
  std::string_view name;
  Field field;
};
constexpr std::array kProblemFields = {FieldName{"capacity", Field::kCapacity},
                                       FieldName{"objective", Field::kObjective},
                                       FieldName{"pods", Field::kPods}};
constexpr std::array kPodFields = {
    FieldName{"id", Field::kId},         FieldName{"bid", Field::kBid},
    FieldName{"weight", Field::kWeight}, FieldName{"min", Field::kMin},
    FieldName{"max", Field::kMax},       FieldName{"guarantee", Field::kGuarantee}};

// Input quoted in a message is cut to this.
constexpr std::size_t kLongestQuote = 64;

// Receives the parser's events and builds the problem. The first thing wrong stops the parser, so
// nothing nests deeper than a pod and nothing is stored that is not wanted.
class Reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Result<Problem> finish() && {
    if (error_) return failure(std::move(*error_));
    if (!has(problem_seen_, Field::kCapacity)) return failure("capacity: is missing");
    if (!has(problem_seen_, Field::kPods)) return failure("pods: is missing");
    for (Pod& pod : problem_.pods) {
      if (pod.max == kUnset) pod.max = std::max(problem_.capacity, pod.min);
    }
    if (Result<void> ok = validate(problem_); !ok) return failure(std::move(ok).error());
    return std::move(problem_);
  }

  // NOLINTBEGIN(readability-identifier-naming): names of nlohmann's SAX interface
  bool null() { return value("null"); }
  bool boolean(bool) { return value("a boolean"); }
  bool binary(binary_t&) { return value("binary"); }
  bool number_integer(number_integer_t number) {
    return whole(number) || this->number(static_cast<double>(number));
  }
  bool number_unsigned(number_unsigned_t number) {
    if (number <= std::numeric_limits<std::int64_t>::max() &&
        whole(static_cast<std::int64_t>(number))) {
      return true;
    }
    return this->number(static_cast<double>(number));
  }
  bool number_float(number_float_t number, const string_t&) {
    // 1e3 and 1000.0 are whole.
    if (std::trunc(number) == number && std::abs(number) < 0x1p63 &&
        whole(static_cast<std::int64_t>(number))) {
      return true;
    }
    return this->number(number);
  }
  bool string(string_t& text) {
    if (field_ == Field::kId && place_ == Place::kPod) {
      if (text.empty()) return fail("is empty");
      pod().id = std::move(text);
      return true;
    }
    if (field_ == Field::kObjective && place_ == Place::kProblem) {
      for (const Objective objective : {Objective::kBargaining, Objective::kWelfare}) {
        if (text == name(objective)) {
          problem_.objective = objective;
          return true;
        }
      }
      return fail(fmt::format("\"{}\" is neither bargaining nor welfare", quoted(text)));
    }
    return value("a string");
  }

  bool start_object(std::size_t) {
    if (place_ == Place::kOutside) {
      place_ = Place::kProblem;
      return true;
    }
    if (place_ == Place::kPods) {
      if (problem_.pods.size() == kMostPods) {
        return failAt("pods", fmt::format("more than {} of them", kMostPods));
      }
      problem_.pods.emplace_back();
      pod().max = kUnset;
      place_ = Place::kPod;
      field_.reset();
      pod_seen_ = 0;
      return true;
    }
    return value("an object");
  }
  bool end_object() {
    if (place_ == Place::kPod) {
      place_ = Place::kPods;
      if (!has(pod_seen_, Field::kId)) {
        return failAt(fmt::format("pods[{}].id", problem_.pods.size() - 1), "is missing");
      }
      if (!has(pod_seen_, Field::kBid)) pod().bid = pod().weight;
      return true;
    }
    place_ = Place::kOutside;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ != Place::kProblem || field_ != Field::kPods) return value("an array");
    place_ = Place::kPods;
    return true;
  }
  bool end_array() {
    place_ = Place::kProblem;
    field_ = Field::kPods;
    return true;
  }
  bool key(string_t& key) {
    if (place_ == Place::kPod) return knownField(key, kPodFields, pod_seen_);
    return knownField(key, kProblemFields, problem_seen_);
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& exception) {
    constexpr int kNumberOverflow = 406;
    if (exception.id == kNumberOverflow) {
      return fail(fmt::format("{} is out of range", quoted(token)));
    }
    return fail(fmt::format("not JSON at byte {}, near `{}`", position, quoted(token)));
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  enum class Place { kOutside, kProblem, kPods, kPod };
  static constexpr Millicores kUnset{-1};  // no input is kept that is negative

  static bool has(unsigned seen, Field field) { return (seen >> static_cast<int>(field) & 1) != 0; }
  Pod& pod() { return problem_.pods.back(); }

  // Whatever the input holds, the message is one line of printable text.
  static std::string quoted(std::string_view text) {
    std::string clean(text.substr(0, kLongestQuote));
    std::replace_if(
        clean.begin(), clean.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
    return clean;
  }

  // Where the parser is: "capacity", "pods[3]", "pods[3].max"; empty outside of any field.
  std::string path() const {
    const auto fieldName = [&](const auto& fields) {
      const auto* found = std::find_if(fields.begin(), fields.end(),
                                       [&](const FieldName& f) { return f.field == field_; });
      return found == fields.end() ? std::string_view() : found->name;
    };
    switch (place_) {
      case Place::kOutside:
        break;
      case Place::kProblem:
        return std::string(fieldName(kProblemFields));
      case Place::kPods:
        return fmt::format("pods[{}]", problem_.pods.size());
      case Place::kPod: {
        const std::string_view field = fieldName(kPodFields);
        return fmt::format("pods[{}]{}{}", problem_.pods.size() - 1, field.empty() ? "" : ".",
                           field);
      }
    }
    return {};
  }
  bool fail(std::string_view message) { return failAt(path(), message); }
  bool failAt(std::string_view where, std::string_view message) {
    if (!error_) {
      error_ = where.empty() ? std::string(message) : fmt::format("{}: {}", where, message);
    }
    return false;
  }

  template <std::size_t N>
  bool knownField(std::string_view key, const std::array<FieldName, N>& fields, unsigned& seen) {
    field_.reset();
    for (const FieldName& field : fields) {
      if (field.name != key) continue;
      field_ = field.field;
      if (has(seen, field.field)) return fail("is repeated");
      seen |= 1u << static_cast<int>(field.field);
      return true;
    }
    const std::string where = path();
    return failAt(fmt::format("{}{}{}", where, where.empty() ? "" : ".", quoted(key)),
                  "is not a field");
  }

  // A value of a kind that does not belong here.
  bool value(std::string_view kind) {
    switch (place_) {
      case Place::kOutside:
        return failAt("", fmt::format("{} instead of an object", kind));
      case Place::kPods:
        return fail(fmt::format("{} instead of an object", kind));
      default:
        break;
    }
    const std::string_view wanted = field_ == Field::kPods ? "an array"
                                    : field_ == Field::kId || field_ == Field::kObjective
                                        ? "a string"
                                        : "a number";
    return fail(fmt::format("{} instead of {}", kind, wanted));
  }

  // Takes the number as an amount of CPU, if the field is one and nothing is wrong.
  bool whole(std::int64_t number) {
    if (number < 0 || (place_ != Place::kPod && place_ != Place::kProblem) || !field_) return false;
    switch (*field_) {
      case Field::kCapacity:
        problem_.capacity = Millicores(number);
        return true;
      case Field::kMin:
        pod().min = Millicores(number);
        return true;
      case Field::kMax:
        pod().max = Millicores(number);
        return true;
      case Field::kGuarantee:
        pod().guarantee = Millicores(number);
        return true;
      default:
        return false;
    }
  }
  bool number(double number) {
    if ((place_ != Place::kPod && place_ != Place::kProblem) || !field_) return value("a number");
    switch (*field_) {
      case Field::kBid:
        pod().bid = number;
        break;
      case Field::kWeight:
        pod().weight = number;
        break;
      case Field::kCapacity:
      case Field::kMin:
      case Field::kMax:
      case Field::kGuarantee:
        if (number < 0) return fail(fmt::format("{} is negative", number));
        if (std::trunc(number) == number) return fail(fmt::format("{} is out of range", number));
        return fail(fmt::format("{} is not a whole number of millicores", number));
      default:
        return value("a number");
    }
    return number >= 0 || fail(fmt::format("{} is negative", number));
  }

  Problem problem_;
  std::optional<std::string> error_;
  Place place_ = Place::kOutside;
  std::optional<Field> field_;
  unsigned problem_seen_ = 0;
  unsigned pod_seen_ = 0;
};

}  // namespace

Result<Problem> parseProblem(std::string_view json) {
  if (json.size() > kLongestJson) {
    return failure(fmt::format("longer than {} bytes", kLongestJson));
  }
  Reader reader;
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return std::move(reader).finish();
}

std::string_view name(Objective objective) {
  return objective == Objective::kBargaining ? "bargaining" : "welfare";
}

std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::kUncongested:
      return "uncongested";
    case Mode::kCongested:
      return "congested";
    case Mode::kOverloaded:
      break;
  }
  return "overloaded";
}

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::kNone:
      return "none";
    case Bound::kMin:
      return "min";
    case Bound::kMax:
      break;
  }
  return "max";
}

std::string toJson(const Problem& problem) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("capacity").value(problem.capacity.count());
  json.key("objective").value(name(problem.objective));
  json.key("pods").beginArray();
  for (const Pod& pod : problem.pods) {
    json.beginObject();
    json.key("id").value(pod.id);
    json.key("bid").value(pod.bid);
    json.key("weight").value(pod.weight);
    json.key("min").value(pod.min.count());
    json.key("max").value(pod.max.count());
    json.key("guarantee").value(pod.guarantee.count());
    json.endObject();
  }
  json.endArray().endObject();
  return out;
}

std::string toJson(const Problem& problem, const Clearing& clearing) {
  std::string out;
  JsonWriter json(out);
  json.beginObject();
  json.key("mode").value(name(clearing.mode));
  json.key("price");
  if (clearing.price) {
    json.value(*clearing.price);
  } else {
    json.null();
  }
  json.key("allocated").value(clearing.allocated.count());
  json.key("unallocated").value(clearing.unallocated.count());
  json.key("pods").beginArray();
  for (std::size_t i = 0; i < clearing.pods.size(); ++i) {
    json.beginObject();
    json.key("id").value(problem.pods[i].id);
    json.key("cpu").value(clearing.pods[i].cpu.count());
    json.key("bound").value(name(clearing.pods[i].bound));
    json.endObject();
  }
  json.endArray().endObject();
  return out;
}

}  // namespace mbcas::market
