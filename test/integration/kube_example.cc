// The controller of docs/kube-runtime.md, which shows it between the two marks.
#include "test/integration/kube_example.h"

#include "mbcas/kube/controller.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"

namespace mbcas::test {

// [example]
// Gives every ConfigMap with the label "stamp" an annotation that says how many keys it has.
void runStamper(kube::Client& client, const std::atomic<bool>& stop) {
  using namespace kube;
  Informer<ConfigMap> maps(client, {.label_selector = "stamp"});

  Controller controller(
      client.clock(), {.name = "stamper", .workers = 2}, [&](const std::string& key) {
        const auto [name_space, name] = splitKey(key);
        const std::shared_ptr<const ConfigMap> map = maps.find(name_space, name);
        if (!map || map->meta.beingDeleted()) return Reconciled::done();

        const std::string wanted = std::to_string(map->data.size());
        if (find(map->meta.annotations, "example.com/keys") == wanted) return Reconciled::done();

        // Server-side apply: we manage this annotation and nothing else. The uid makes sure that it
        // is still the same object.
        const std::string body = fmt::format(
            R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","uid":"{}",
             "annotations":{{"example.com/keys":"{}"}}}}}})",
            name, map->meta.uid.view(), wanted);
        const auto applied =
            client.apply<ConfigMap>(name_space, name, body, {.field_manager = "stamper"});
        if (applied || applied.error().notFound()) return Reconciled::done();
        return Reconciled::failed(applied.error().toError());  // tried again, later each time
      });

  maps.onChange(
      [&](const TypedChange<ConfigMap>& change) { controller.queue().add(change.key()); });
  maps.start();
  if (!maps.waitForSync(std::chrono::minutes(2))) return;
  controller.start();
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  maps.stop();        // no new work,
  controller.stop();  // and what is in line is finished
}
// [example]

}  // namespace mbcas::test
