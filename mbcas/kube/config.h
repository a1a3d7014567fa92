// How to reach an API server and as whom: from kubeconfig files, or from inside a pod. The rules
// are those of kubectl. Nothing here reads the environment: the caller passes what it says.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::kube {

// A file, or its contents; contents win. Files are read when a connection is made, so that a
// renewed certificate is used from then on.
struct PemSource {
  std::string path;
  std::string data;
  bool empty() const { return path.empty() && data.empty(); }
};

// A program that prints an ExecCredential (client.authentication.k8s.io).
struct ExecPlugin {
  std::string command;  // as found in PATH, or a path
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to the process' own
  std::string api_version;
  std::string install_hint;
  bool provide_cluster_info = false;
  friend bool operator==(const ExecPlugin&, const ExecPlugin&) = default;
};

struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

struct ClientConfig {
  std::string server;  // "https://host:port[/prefix]", no trailing slash
  std::string name_space = "default";
  // TLS
  PemSource ca;  // empty: the system's authorities
  PemSource client_cert;
  PemSource client_key;
  std::string tls_server_name;  // for SNI and verification, instead of the server's host
  bool insecure = false;        // do not verify the server at all
  std::string proxy_url;        // http, https or socks5
  bool compress = true;         // ask for gzip on get and list
  // Credentials; at most one kind is used: exec, token file, token, user and password.
  std::optional<ExecPlugin> exec;
  std::string token_file;  // re-read as it is rotated; wins over token
  std::string token;
  std::string username;
  std::string password;
  Impersonation impersonate;
};

struct KubeconfigSource {
  std::string explicit_path;  // --kubeconfig: must exist
  std::string environment;    // $KUBECONFIG: a list separated by ':'; missing files are skipped
  std::string home;           // ~/.kube/config if neither of the above is given
  std::string context;        // --context; empty: the file's current-context
  std::string cluster{};      // --cluster; empty: that of the context
  std::string user{};         // --user; empty: that of the context
};
Result<ClientConfig> loadKubeconfig(const KubeconfigSource& source);

struct InClusterSource {
  std::string service_host;  // $KUBERNETES_SERVICE_HOST
  std::string service_port;  // $KUBERNETES_SERVICE_PORT
  std::string directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Result<ClientConfig> inClusterConfig(const InClusterSource& source);

// The whole of a small file (up to 1 MiB).
Result<std::string> readSmallFile(const std::string& path);

}  // namespace mbcas::kube
