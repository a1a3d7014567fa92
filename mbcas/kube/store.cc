#include "mbcas/kube/store.h"

#include <algorithm>

namespace mbcas::kube {
namespace {

void addChanges(const ObjectPtr& before, const ObjectPtr& after, bool late,
                std::vector<Change>& changes) {
  if (before && after && before->meta.uid != after->meta.uid) {
    changes.push_back({before, nullptr, late});
    changes.push_back({nullptr, after, false});
  } else {
    changes.push_back({before, after, late && !after});
  }
}

}  // namespace

void Store::addIndex(std::string name, IndexFunction function) {
  const WriterLock lock(mutex_);
  indexes_[std::move(name)].function = std::move(function);
}

void Store::index(const ObjectPtr& object) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(*object)) {
      std::vector<ObjectPtr>& group = index.objects[std::hash<std::string>()(value)];
      const auto place = std::ranges::lower_bound(group, object);
      if (place == group.end() || *place != object) group.insert(place, object);
    }
  }
}

void Store::unindex(const ObjectPtr& object) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(*object)) {
      const auto found = index.objects.find(std::hash<std::string>()(value));
      if (found == index.objects.end()) continue;
      std::vector<ObjectPtr>& group = found->second;
      const auto place = std::ranges::lower_bound(group, object);
      if (place != group.end() && *place == object) group.erase(place);
      if (group.empty()) index.objects.erase(found);
    }
  }
}

std::vector<Change> Store::put(const ObjectPtr& object) {
  std::vector<Change> changes;
  const WriterLock lock(mutex_);
  ObjectPtr before;
  if (const auto found = objects_.find(object); found != objects_.end()) {
    before = *found;
    unindex(before);
    objects_.erase(found);
  }
  index(object);
  objects_.insert(object);
  addChanges(before, object, false, changes);
  return changes;
}

std::vector<Change> Store::erase(const ObjectPtr& last_state) {
  const WriterLock lock(mutex_);
  const auto found = objects_.find(last_state);
  if (found == objects_.end()) return {};
  const auto taken = objects_.extract(found);
  const ObjectPtr& before = taken.value();
  unindex(before);
  // The event carries a newer state than ours, unless it is of another incarnation.
  return {{before->meta.uid == last_state->meta.uid ? last_state : before, nullptr, false}};
}

std::vector<Change> Store::erase(ObjectName name) {
  const ObjectPtr known = find(name.name_space, name.name);
  return known ? erase(known) : std::vector<Change>();
}

std::vector<Change> Store::replace(ObjectSet objects) {
  std::vector<Change> changes;
  changes.reserve(objects.size());
  const WriterLock lock(mutex_);
  for (const ObjectPtr& before : objects_) {
    if (!objects.contains(before)) addChanges(before, nullptr, true, changes);
  }
  std::vector<ObjectPtr> unchanged;
  for (const ObjectPtr& after : objects) {
    const auto found = objects_.find(after);
    if (found == objects_.end()) {
      addChanges(nullptr, after, false, changes);
    } else if ((*found)->meta.uid == after->meta.uid &&
               (*found)->meta.resource_version == after->meta.resource_version) {
      unchanged.push_back(*found);
    } else {
      addChanges(*found, after, true, changes);
    }
  }
  // Keep the copies that others may hold already.
  for (ObjectPtr& object : unchanged) {
    objects.erase(object);
    objects.insert(std::move(object));
  }
  objects_ = std::move(objects);
  for (auto& [name, index] : indexes_) index.objects.clear();
  for (const ObjectPtr& object : objects_) index(object);
  return changes;
}

ObjectPtr Store::known(ObjectPtr object) const {
  const ReaderLock lock(mutex_);
  const auto found = objects_.find(object);
  const bool same = found != objects_.end() && (*found)->meta.uid == object->meta.uid &&
                    (*found)->meta.resource_version == object->meta.resource_version;
  return same ? *found : object;
}

ObjectPtr Store::find(std::string_view name_space, std::string_view name) const {
  const ReaderLock lock(mutex_);
  const auto found = objects_.find(ObjectName{name_space, name});
  return found == objects_.end() ? nullptr : *found;
}

std::vector<ObjectPtr> Store::list() const {
  const ReaderLock lock(mutex_);
  return {objects_.begin(), objects_.end()};
}

std::vector<ObjectPtr> Store::byIndex(const std::string& index, const std::string& value) const {
  const ReaderLock lock(mutex_);
  const auto found = indexes_.find(index);
  if (found == indexes_.end()) return {};
  const Index& in = found->second;
  const auto group = in.objects.find(std::hash<std::string>()(value));
  if (group == in.objects.end()) return {};
  std::vector<ObjectPtr> objects;
  objects.reserve(group->second.size());
  for (const ObjectPtr& object : group->second) {
    const std::vector<std::string> values = in.function(*object);
    if (std::ranges::find(values, value) != values.end()) objects.push_back(object);
  }
  return objects;
}

std::size_t Store::size() const {
  const ReaderLock lock(mutex_);
  return objects_.size();
}

}  // namespace mbcas::kube
