// Running a program in a container, over the WebSocket protocol of current API servers
// (v5.channel.k8s.io, or v4 where the way to the container has no v5).
//
//   Exec exec(client, {.name_space = "default", .pod = "web-1", .command = {"ls", "/"}},
//             {.out = [](std::string_view piece) { ... },
//              .done = [](ApiResult<int> exit_code) { ... }});
//
// The program's standard input is empty. Who runs it needs the verbs get and create of pods/exec
// in the namespace: servers before 1.35 ask for get only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/kube/client.h"

namespace mbcas::kube {

struct ExecRequest {
  std::string name_space;
  std::string pod;
  std::string container{};  // empty: the pod's first, or its default one
  std::vector<std::string> command;
  // The program is given up after so long without a word from it. 0: never.
  Nanos idle_timeout = std::chrono::minutes(1);
};

// All on the loop.
struct ExecHandlers {
  std::function<void(std::string_view piece)> out;  // of its standard output, in any pieces
  // Once: its exit code, or why it did not run to its end. The first lines of what it wrote to
  // standard error are in `complaint`.
  std::function<void(ApiResult<int> exit_code, std::string complaint)> done;
};

class Exec {
 public:
  // `client` outlives it. Any thread.
  Exec(Client& client, ExecRequest request, ExecHandlers handlers);
  // Gives the program up: its connection is closed, and handlers are not called any more. Not on
  // the loop.
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

 private:
  struct Stream;
  Client& client_;
  std::shared_ptr<Stream> stream_;
  Client::Id call_ = 0;
};

// The end of a program as the server tells it on its error channel, a Status: the exit code, or why
// it did not run. Pure.
ApiResult<int> readExecStatus(std::string text);

}  // namespace mbcas::kube
