// A real etcd and kube-apiserver of its own for a test, on loopback ports and private data:
//
//   auto plane = ControlPlane::start();
//   ASSERT_TRUE(plane) << plane.error();
//   Client client((*plane)->server(), (*plane)->token(), (*plane)->caFile());
//
// Any number may run at once. All of it ends with the object, or with the process however it dies.
// There are no controllers and no kubelet: the test itself plays whatever part of them it needs.
#pragma once

#include <sys/types.h>

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mbcas::test {

class ControlPlane {
 public:
  struct Options {
    // "name" or "name,group,...": a further user with a token; what it may do is up to RBAC.
    std::vector<std::string> users;
    std::vector<std::string> apiserverArgs;
    std::vector<std::string> etcdArgs;
    // Whether pods must have a service account, which no controller creates here.
    bool serviceAccountAdmission = false;
  };

  // Why no control plane can start here, for GTEST_SKIP; nothing when it can.
  static std::optional<std::string> skipReason();

  // Returns when the apiserver is ready, or what went wrong.
  static std::expected<std::unique_ptr<ControlPlane>, std::string> start(const Options& options);
  static std::expected<std::unique_ptr<ControlPlane>, std::string> start();

  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  const std::string& server() const { return facts_.server; }          // https://127.0.0.1:PORT
  const std::string& caFile() const { return facts_.caFile; }          // a path
  const std::string& token() const { return facts_.token; }            // of an administrator
  const std::string& kubeconfig() const { return facts_.kubeconfig; }  // a path, administrator
  const std::string& kubectl() const { return facts_.kubectl; }        // a path
  const std::string& dir() const { return facts_.dir; }                // all data, gone at the end
  const std::string& id() const { return facts_.id; }
  const std::map<std::string, std::string>& userTokens() const { return facts_.userTokens; }
  pid_t supervisor() const { return supervisor_; }
  // "etcd" and "apiserver", as first started.
  const std::map<std::string, pid_t>& pids() const { return facts_.pids; }

  // Each returns when it is done, with an error text if it failed. A restart keeps address and
  // data.
  std::expected<void, std::string> stopApiserver() { return command("stop apiserver"); }
  std::expected<void, std::string> killApiserver() { return command("kill apiserver"); }
  std::expected<void, std::string> startApiserver() { return command("start apiserver"); }
  // Accepts connections but answers nothing until resumed.
  std::expected<void, std::string> pauseApiserver() { return command("pause apiserver"); }
  std::expected<void, std::string> resumeApiserver() { return command("resume apiserver"); }
  // Forgets all history in etcd.
  std::expected<void, std::string> compact() { return command("compact"); }
  // Any command of `tools/cluster/cluster control-plane`, such as "kill etcd".
  std::expected<void, std::string> command(std::string_view line);

 private:
  struct Facts {
    std::string id, server, caFile, token, kubeconfig, kubectl, dir;
    std::map<std::string, std::string> userTokens;
    std::map<std::string, pid_t> pids;
  };

  ControlPlane(pid_t supervisor, int channel) : supervisor_(supervisor), channel_(channel) {}
  std::expected<std::string, std::string> readLine();

  pid_t supervisor_;
  int channel_;  // the supervisor's standard input and output; its end ends the supervisor
  std::string unread_;
  Facts facts_;
};

// The command line tool that starts all of this, below $MBCAS_SOURCE_DIR or the working directory.
std::string clusterTool();

}  // namespace mbcas::test
