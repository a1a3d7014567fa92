#include "mbcas/kube/object.h"

#include <fmt/format.h>

#include <algorithm>

#include "mbcas/base/time.h"

namespace mbcas::kube {
namespace {

// kubectl keeps a second copy of the object here: kilobytes that say nothing new.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// What decoders expect of the first object, see object.h.
constexpr std::size_t kFirstExpected = 256;

// A controller has many objects. Another owner may have this one only, as a pod has its
// PodAllocation: what is said of it would fill the pool, and keep it for the sake of a single
// object.
List<OwnerReference> decodeOwners(Arena& arena, const ObjectMeta& meta, JsonCursor value) {
  std::vector<OwnerReference> owners;
  bool controllers = true;
  value.elements([&](JsonCursor element) {
    OwnerReference owner;
    std::string name;
    std::string uid;
    element.members([&](std::string_view key, JsonCursor field) {
      if (key == "kind") owner.kind = arena.shared(field.text());
      if (key == "name") name = field.text();
      if (key == "uid") uid = field.text();
      if (key == "controller") owner.controller = field.boolean();
    });
    controllers &= owner.controller;
    owner.name = owner.controller ? arena.shared(name) : arena.text(name);
    owner.uid = owner.controller   ? arena.shared(uid)
                : uid == meta.name ? meta.name
                                   : arena.text(uid);
    owners.push_back(owner);
  });
  return controllers ? arena.sharedList(owners) : arena.list(owners);
}

bool keeps(const std::optional<std::vector<std::string>>& prefixes, std::string_view key) {
  if (key == kInitialEventsEnd) return true;
  if (!prefixes) return key != kLastApplied;
  return std::any_of(prefixes->begin(), prefixes->end(),
                     [&](const std::string& prefix) { return key.starts_with(prefix); });
}

constexpr ProtobufField kIdentityFields[] = {
    {1, "name"}, {3, "namespace"}, {5, "uid"}, {6, "resourceVersion"}};
constexpr ProtobufMessage kIdentity{kIdentityFields};
constexpr ProtobufField kAnyObjectFields[] = {
    {1, "metadata", ProtobufType::kMessage, ProtobufShape::kOne, &kIdentity}};
constexpr ProtobufMessage kAnyObject{kAnyObjectFields};

}  // namespace

void PassedOver::because(const Error& error) {
  constexpr std::size_t kLongest = 300;
  why = error.message().substr(0, kLongest);
  for (char& c : why) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
}

void Decoder::decodeMeta(Object& object, JsonCursor value) const {
  ObjectMeta& meta = object.meta;
  Arena& arena = object.arena;
  value.members([&](std::string_view key, JsonCursor field) {
    if (key == "name") {
      meta.name = arena.text(field.text());
    } else if (key == "namespace") {
      meta.namespace_ = arena.shared(field.text());
    } else if (key == "uid") {
      meta.uid = arena.text(field.text());
    } else if (key == "resourceVersion") {
      meta.resource_version = arena.text(field.text());
    } else if (key == "generation") {
      meta.generation = field.integer();
    } else if (key == "creationTimestamp") {
      meta.created = decodeTime(field);
    } else if (key == "deletionTimestamp") {
      meta.deleted = decodeTime(field);
    } else if (key == "labels") {
      std::vector<KeyValue> entries;
      field.members([&](std::string_view name, JsonCursor text) {
        if (labels_ && !keeps(labels_, name)) return;
        const Str kept = arena.shared(name);
        entries.push_back({kept, arena.shared(text.text())});
      });
      meta.labels = arena.sharedList(entries);
    } else if (key == "annotations") {
      std::vector<KeyValue> entries;
      field.members([&](std::string_view name, JsonCursor text) {
        if (!keeps(annotations_, name)) return;
        const Str kept = arena.shared(name);
        entries.push_back({kept, arena.perhapsShared(text.text())});
      });
      meta.annotations = arena.list(entries);
    } else if (key == "ownerReferences") {
      meta.owners = decodeOwners(arena, meta, field);
    }
  });
}

std::optional<std::string_view> find(const List<KeyValue>& map, std::string_view key) {
  for (const KeyValue& entry : map) {
    if (entry.key == key) return entry.value.view();
  }
  return std::nullopt;
}

const OwnerReference* ObjectMeta::controller() const {
  for (const OwnerReference& owner : owners) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

std::string objectKey(std::string_view name_space, std::string_view name) {
  if (name_space.empty()) return std::string(name);
  return fmt::format("{}/{}", name_space, name);
}

SplitKey splitKey(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {{}, key};
  return {key.substr(0, slash), key.substr(slash + 1)};
}

std::string percentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string Kind::apiVersion() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

std::string Kind::path(std::string_view name_space, std::string_view object,
                       std::string_view subresource) const {
  std::string path =
      group.empty() ? fmt::format("/api/{}", version) : fmt::format("/apis/{}/{}", group, version);
  if (namespaced && !name_space.empty())
    path += fmt::format("/namespaces/{}", percentEncode(name_space));
  path += fmt::format("/{}", plural);
  if (!object.empty()) path += fmt::format("/{}", percentEncode(object));
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

List<KeyValue> decodeMap(Arena& arena, JsonCursor value) {
  std::vector<KeyValue> entries;
  value.members([&](std::string_view key, JsonCursor text) {
    const Str kept = arena.shared(key);
    entries.push_back({kept, arena.shared(text.scalar())});
  });
  return arena.sharedList(entries);
}

List<Str> decodeTexts(Arena& arena, JsonCursor value) {
  std::vector<Str> texts;
  value.elements([&](JsonCursor element) { texts.push_back(arena.text(element.text())); });
  return arena.list(texts);
}

WallTime decodeTime(JsonCursor value) {
  const std::string_view text = value.text();
  if (text.empty()) return {};
  const Result<WallTime> time = parseRfc3339(text);
  if (time) return *time;
  value.fail(time.error().message());
  return {};
}

ObjectPtr Decoder::decode(const Kind& kind, JsonCursor value) {
  // Not for the first object: most decoders read one only, and a pool is larger than that.
  const bool first = expected_ == kFirstExpected;
  if (!first && (!pool_ || pool_->full())) pool_ = std::make_shared<Pool>();
  std::shared_ptr<Object> object = kind.create(expected_);
  object->arena.usePool(pool_);
  object->arena.keepAtMost(most_);
  value.members([&](std::string_view key, JsonCursor member) {
    if (key == "metadata") {
      decodeMeta(*object, member);
    } else {
      kind.member(*object, key, member);
    }
  });
  if (object->arena.overfull()) {
    value.fail(fmt::format("more than the {} bytes that are kept of an object", most_));
  }
  expected_ = object->arena.used() + 24;
  return object;
}

PassedOver Decoder::identify(JsonCursor object) {
  PassedOver found;
  object.members([&](std::string_view key, JsonCursor member) {
    if (key != "metadata") return;
    member.members([&](std::string_view name, JsonCursor field) {
      if (name == "name") found.name = field.text();
      if (name == "namespace") found.name_space = field.text();
      if (name == "uid") found.uid = field.text();
      if (name == "resourceVersion") found.resource_version = field.text();
    });
  });
  return found;
}

Result<PassedOver> Decoder::identify(std::string& json, const Error& why) {
  PassedOver found;
  Result<void> parsed = parser_.parse(json, [&](JsonCursor root) { found = identify(root); });
  if (!parsed) return failure(why);
  found.because(why);
  return found;
}

Result<PassedOver> Decoder::identifyProtobuf(std::string_view bytes, const Error& why) {
  PassedOver found;
  Result<void> parsed =
      parseProtobuf(kAnyObject, bytes, [&](JsonCursor root) { found = identify(root); });
  if (!parsed) return failure(why);
  found.because(why);
  return found;
}

Result<ObjectPtr> Decoder::checked(const Kind& kind, ObjectPtr object, Result<void> parsed) {
  if (!parsed) {
    std::string what = fmt::format("decoding a {}", kind.name);
    if (object && !object->meta.name.empty()) what += fmt::format(" {}", objectKey(object->meta));
    return failure(std::move(parsed).error().within(what));
  }
  if (object->meta.name.empty()) {
    return failure(fmt::format("decoding a {}: metadata.name is missing", kind.name));
  }
  return object;
}

Result<ObjectPtr> Decoder::decode(const Kind& kind, std::string& json) {
  ObjectPtr object;
  Result<void> parsed = parser_.parse(json, [&](JsonCursor root) { object = decode(kind, root); });
  return checked(kind, std::move(object), std::move(parsed));
}

Result<ObjectPtr> Decoder::decodeProtobuf(const Kind& kind, std::string_view bytes) {
  ObjectPtr object;
  Result<void> parsed =
      parseProtobuf(*kind.protobuf, bytes, [&](JsonCursor root) { object = decode(kind, root); });
  return checked(kind, std::move(object), std::move(parsed));
}

}  // namespace mbcas::kube
