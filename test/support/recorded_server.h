// An API server that knows only what was written down: objects by kind, and texts by path. For what
// commands print, to the letter; how a real server behaves is for the integration tests.
//
// The file: {"objects": {"/api/v1 pods": [...], "/apis/coordination.k8s.io/v1 leases": [...]},
//            "texts": {"/version": {...}, "/api/v1/nodes/n1/proxy/stats/summary": "..."},
//            "forbidden": ["patch pods/resize"]}      to the caller himself
// "@-65" in a string of it becomes the time 65 seconds ago.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace mbcas::test {

class RecordedServer {
 public:
  explicit RecordedServer(const std::string& file);
  ~RecordedServer();
  RecordedServer(const RecordedServer&) = delete;
  RecordedServer& operator=(const RecordedServer&) = delete;

  const std::string& kubeconfig() const;  // a path
  // From now on that path answers with this status.
  void fail(const std::string& path, int code, const std::string& reason,
            const std::string& message);
  // Changes what was written down, by a JSON merge patch.
  void change(const std::string& patch);
  // What there is, as the file has it.
  std::string content() const;
  // From now on it accepts requests and answers none.
  void hang();
  // "GET /api/v1/pods?limit=500", in order.
  std::vector<std::string> requests() const;
  // Who was acted as, a line for each request by somebody else: "alice uid 7 in dev,ops".
  std::vector<std::string> impersonations() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mbcas::test
