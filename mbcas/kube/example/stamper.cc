// The code between the marks is shown in mbcas/kube/README.md and docs/kube-runtime.md.
#include "stamper.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "mbcas/kube/controller.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"

namespace example {

// [example]
using namespace mbcas::kube;

// Gives every ConfigMap with the label "stamp" an annotation with its number of keys.
void runStamper(Client& client, const std::atomic<bool>& stop) {
  Informer<ConfigMap> maps(client, {.label_selector = "stamp"});

  Controller controller(
      client.clock(), {.name = "stamper", .workers = 2}, [&](const std::string& key) {
        const auto [name_space, name] = splitKey(key);
        const std::shared_ptr<const ConfigMap> map = maps.find(name_space, name);
        if (!map || map->meta.beingDeleted()) return Reconciled::done();

        const std::string wanted = std::to_string(map->data.size());
        if (find(map->meta.annotations, "example.com/keys") == wanted) return Reconciled::done();

        // Server-side apply: we manage this annotation and nothing else. The UID makes sure that
        // the object is still the same one.
        const std::string body = fmt::format(
            R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}","uid":"{}",
             "annotations":{{"example.com/keys":"{}"}}}}}})",
            name, map->meta.uid.view(), wanted);
        const auto applied =
            client.apply<ConfigMap>(name_space, name, body, {.field_manager = "stamper"});
        if (applied || applied.error().notFound()) return Reconciled::done();
        return Reconciled::failed(applied.error().toError());  // retried, later each time
      });

  maps.onChange(
      [&](const TypedChange<ConfigMap>& change) { controller.queue().add(change.key()); });
  maps.start();
  if (!maps.waitForSync(std::chrono::minutes(2))) return;
  controller.start();
  while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  maps.stop();        // no new keys
  controller.stop();  // the keys in the queue are finished
}
// [example]

}  // namespace example
