// The objects of one kind as last seen, by namespace and name, with indexes. One thread writes, any
// reads; what is read are the immutable objects themselves.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mbcas/base/mutex.h"
#include "mbcas/kube/object.h"

namespace mbcas::kube {

struct ObjectName {
  std::string_view name_space;
  std::string_view name;
};

// A set of objects, one per namespace and name. The key is the object's own text: none is stored.
struct ObjectNameHash {
  using is_transparent = void;
  std::size_t operator()(ObjectName key) const {
    const std::hash<std::string_view> hash;
    return hash(key.name) * 31 + hash(key.name_space);
  }
  std::size_t operator()(const ObjectPtr& object) const {
    return (*this)(ObjectName{object->meta.namespace_, object->meta.name});
  }
};
struct ObjectNameEqual {
  using is_transparent = void;
  static ObjectName nameOf(const ObjectPtr& object) {
    return {object->meta.namespace_, object->meta.name};
  }
  static ObjectName nameOf(ObjectName name) { return name; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    const ObjectName x = nameOf(a);
    const ObjectName y = nameOf(b);
    return x.name == y.name && x.name_space == y.name_space;
  }
};
using ObjectSet = std::unordered_set<ObjectPtr, ObjectNameHash, ObjectNameEqual>;

// One object came, changed or went.
struct Change {
  ObjectPtr before;  // null: it is new
  ObjectPtr after;   // null: it is gone; `before` is its last known state
  // It went unseen, noticed by a later list: `before` may be older than its true last state.
  bool noticed_late = false;
};

class Store {
 public:
  // The values under which an object is found in an index.
  using IndexFunction = std::function<std::vector<std::string>(const Object&)>;
  // Before the first write.
  void addIndex(std::string name, IndexFunction function);

  // Writers return what changed, in order. An object that comes under the name of another (a new
  // UID) is two changes: the old one is gone, the new one is new.
  std::vector<Change> put(const ObjectPtr& object);
  std::vector<Change> erase(const ObjectPtr& last_state);
  std::vector<Change> erase(ObjectName name);  // its last state is not known
  // From now on exactly these. Readers see the old set or the new one, nothing between.
  std::vector<Change> replace(ObjectSet objects);

  // The copy that is here, if it is the same version of the same object; else this one.
  ObjectPtr known(ObjectPtr object) const;

  ObjectPtr find(std::string_view name_space, std::string_view name) const;
  std::vector<ObjectPtr> list() const;
  std::vector<ObjectPtr> byIndex(const std::string& index, const std::string& value) const;
  std::size_t size() const;

 private:
  struct Index {
    IndexFunction function;
    // By hash of the value, ordered by address. Values are not kept: byIndex() asks the function
    // again.
    std::unordered_map<std::size_t, std::vector<ObjectPtr>> objects;
  };
  void index(const ObjectPtr& object) MBCAS_REQUIRES(mutex_);
  void unindex(const ObjectPtr& object) MBCAS_REQUIRES(mutex_);

  mutable SharedMutex mutex_;
  ObjectSet objects_ MBCAS_GUARDED_BY(mutex_);
  std::map<std::string, Index> indexes_ MBCAS_GUARDED_BY(mutex_);
};

}  // namespace mbcas::kube
