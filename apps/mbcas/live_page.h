// The page of `mbcas ui` and of `mbcas demo --ui`: serves it, prints its address and opens it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "mbcas/base/result.h"
#include "mbcas/cli/cluster_pods.h"
#include "mbcas/cli/record.h"
#include "mbcas/ui/server.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
class Option;
}  // namespace CLI

namespace mbcas::app {

struct PageFlags {
  int port = 0;
  bool no_open = false;
};
// They need the flag `ui`, where one is given.
void addPageFlags(CLI::App& command, PageFlags& flags, CLI::Option* ui = nullptr);

// Construct it after a Patience, so that signals are for the main thread.
class LivePage {
 public:
  // Of what the page shows. `kind`: cluster, host, simulation, recording or demo.
  struct Source {
    std::string kind;
    std::string title;
    std::string detail{};
    bool cluster = false;  // there are pictures of a cluster
  };

  Result<void> start(const PageFlags& flags, const Source& source);

  // What the page says about the source: "live" more comes, "waiting" it does not answer now,
  // "over" nothing more comes.
  void setStatus(std::string_view state, std::string_view text);
  void publish(const cli::NodeRecord& node);
  void publish(const std::string& state);  // as stateJson() writes it

  // A picture of a cluster, as clusterJson() writes it.
  void setCluster(std::string picture) { server_.setCluster(std::move(picture)); }
  void publishPicture(const std::string& picture) { server_.publishPicture(picture); }  // recorded
  // Before start(): the pods of a cluster. On the thread of the server.
  using PodsOf = std::function<cli::PodAnswer(const cli::PodQuestion& question)>;
  void onPods(PodsOf pods);
  // Before start(): called with the node that a page shows, every few seconds.
  void onFollow(std::function<void(std::string node)> followed);

  // With a token that has not been used.
  std::string address() const { return server_.address(); }
  // An address is good once. Prints the next one when the last one has been used; call it now and
  // then.
  void tellAddress();

 private:
  ui::Server server_;
  std::string told_;
};

}  // namespace mbcas::app
