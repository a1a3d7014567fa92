#include "mbcas/kube/config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace mbcas::kube {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

// One named entry of clusters, users or contexts, and the folder its relative paths start from.
struct Entry {
  YAML::Node node;
  std::filesystem::path folder;
};

struct Merged {
  std::map<std::string, Entry> clusters;
  std::map<std::string, Entry> users;
  std::map<std::string, Entry> contexts;
  std::string current_context;
};

Result<std::string> decodeBase64(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (c >= '0' && c <= '9') value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (c == '=' || c == '\n' || c == '\r' || c == ' ') continue;
    if (value < 0) return failure("not base64");
    bits = (bits << 6) | static_cast<unsigned>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>((bits >> count) & 0xff));
    }
  }
  return out;
}

std::string textAt(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

bool truthAt(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() && value.as<bool>();
}

// Commands and files of a kubeconfig are relative to the file that names them.
std::string pathAt(const Entry& entry, const char* key) {
  std::string path = textAt(entry.node, key);
  if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
  return (entry.folder / path).lexically_normal().string();
}

Result<PemSource> pemAt(const Entry& entry, const std::string& key) {
  PemSource pem;
  const std::string data = textAt(entry.node, (key + "-data").c_str());
  if (data.empty()) {
    pem.path = pathAt(entry, key.c_str());
    return pem;
  }
  Result<std::string> decoded = decodeBase64(data);
  if (!decoded) return failure(std::move(decoded).error().within(key + "-data"));
  pem.data = *std::move(decoded);
  return pem;
}

void mergeNamed(const YAML::Node& list, const char* inner, const std::filesystem::path& folder,
                std::map<std::string, Entry>& into) {
  if (!list || !list.IsSequence()) return;
  for (const YAML::Node& item : list) {
    const YAML::Node body = item[inner];
    into.try_emplace(textAt(item, "name"),
                     Entry{body ? body : YAML::Node(YAML::NodeType::Map), folder});
  }
}

void mergeFile(const std::string& path, const std::string& text, Merged& merged) {
  const YAML::Node root = YAML::Load(text);
  if (!root.IsMap()) return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  mergeNamed(root["clusters"], "cluster", folder, merged.clusters);
  mergeNamed(root["users"], "user", folder, merged.users);
  mergeNamed(root["contexts"], "context", folder, merged.contexts);
  if (merged.current_context.empty()) merged.current_context = textAt(root, "current-context");
}

ExecPlugin execOf(const Entry& user) {
  const YAML::Node node = user.node["exec"];
  ExecPlugin plugin;
  plugin.command = textAt(node, "command");
  // As a shell would: a name is looked up in PATH, a relative path is relative to the kubeconfig.
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = pathAt({node, user.folder}, "command");
  }
  for (const YAML::Node& arg : node["args"]) plugin.args.push_back(arg.Scalar());
  for (const YAML::Node& pair : node["env"]) {
    plugin.env.emplace_back(textAt(pair, "name"), textAt(pair, "value"));
  }
  plugin.api_version = textAt(node, "apiVersion");
  plugin.install_hint = textAt(node, "installHint");
  plugin.provide_cluster_info = truthAt(node, "provideClusterInfo");
  return plugin;
}

Impersonation impersonationOf(const YAML::Node& user) {
  Impersonation as;
  as.user = textAt(user, "as");
  as.uid = textAt(user, "as-uid");
  for (const YAML::Node& group : user["as-groups"]) as.groups.push_back(group.Scalar());
  for (const auto& extra : user["as-user-extra"]) {
    for (const YAML::Node& value : extra.second) {
      as.extra[extra.first.Scalar()].push_back(value.Scalar());
    }
  }
  return as;
}

Result<void> applyCluster(const Entry& cluster, ClientConfig& config) {
  config.server = textAt(cluster.node, "server");
  while (config.server.ends_with('/')) config.server.pop_back();
  if (config.server.empty()) return failure("no server");
  config.tls_server_name = textAt(cluster.node, "tls-server-name");
  config.insecure = truthAt(cluster.node, "insecure-skip-tls-verify");
  config.proxy_url = textAt(cluster.node, "proxy-url");
  config.compress = !truthAt(cluster.node, "disable-compression");
  Result<PemSource> ca = pemAt(cluster, "certificate-authority");
  if (!ca) return failure(std::move(ca).error());
  config.ca = *std::move(ca);
  if (config.insecure && !config.ca.empty()) {
    return failure("insecure-skip-tls-verify together with a certificate-authority");
  }
  return {};
}

Result<void> applyUser(const Entry& user, ClientConfig& config) {
  Result<PemSource> cert = pemAt(user, "client-certificate");
  if (!cert) return failure(std::move(cert).error());
  Result<PemSource> key = pemAt(user, "client-key");
  if (!key) return failure(std::move(key).error());
  config.client_cert = *std::move(cert);
  config.client_key = *std::move(key);
  if (config.client_cert.empty() != config.client_key.empty()) {
    return failure("a client certificate needs its key, and a key its certificate");
  }
  config.token = textAt(user.node, "token");
  config.token_file = pathAt(user, "tokenFile");
  config.username = textAt(user.node, "username");
  config.password = textAt(user.node, "password");
  config.impersonate = impersonationOf(user.node);
  if (user.node["exec"]) {
    config.exec = execOf(user);
    if (config.exec->command.empty()) return failure("exec: no command");
    if (config.exec->api_version != "client.authentication.k8s.io/v1" &&
        config.exec->api_version != "client.authentication.k8s.io/v1beta1") {
      return failure(fmt::format("exec: unknown apiVersion \"{}\"", config.exec->api_version));
    }
  }
  return {};
}

Result<ClientConfig> configOf(const Merged& merged, const KubeconfigSource& source) {
  const std::string& context_name =
      source.context.empty() ? merged.current_context : source.context;
  YAML::Node context(YAML::NodeType::Map);
  // A cluster that is named by itself needs no context.
  if (!context_name.empty() || source.cluster.empty()) {
    if (context_name.empty()) return failure("no context is chosen: current-context is empty");
    const auto found = merged.contexts.find(context_name);
    if (found == merged.contexts.end()) {
      return failure(fmt::format("no context named \"{}\"", context_name));
    }
    context = found->second.node;
  }
  ClientConfig config;
  if (std::string ns = textAt(context, "namespace"); !ns.empty()) {
    config.name_space = std::move(ns);
  }
  // Where a name came from, for errors.
  const auto of = [&](const std::string& given) {
    return given.empty() ? fmt::format("context \"{}\": ", context_name) : std::string();
  };
  const std::string cluster_name =
      source.cluster.empty() ? textAt(context, "cluster") : source.cluster;
  const auto cluster = merged.clusters.find(cluster_name);
  if (cluster == merged.clusters.end()) {
    return failure(fmt::format("{}no cluster named \"{}\"", of(source.cluster), cluster_name));
  }
  if (Result<void> done = applyCluster(cluster->second, config); !done) {
    return failure(std::move(done).error().within(fmt::format("cluster \"{}\"", cluster_name)));
  }
  const std::string user_name = source.user.empty() ? textAt(context, "user") : source.user;
  if (user_name.empty()) return config;  // anonymous
  const auto user = merged.users.find(user_name);
  if (user == merged.users.end()) {
    return failure(fmt::format("{}no user named \"{}\"", of(source.user), user_name));
  }
  if (Result<void> done = applyUser(user->second, config); !done) {
    return failure(std::move(done).error().within(fmt::format("user \"{}\"", user_name)));
  }
  return config;
}

std::vector<std::string> filesOf(const KubeconfigSource& source) {
  if (!source.explicit_path.empty()) return {source.explicit_path};
  std::vector<std::string> files;
  std::string_view rest = source.environment;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    if (const std::string_view path = rest.substr(0, colon); !path.empty())
      files.emplace_back(path);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  if (source.environment.empty() && !source.home.empty()) {
    files.push_back(source.home + "/.kube/config");
  }
  return files;
}

}  // namespace

Result<std::string> readSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failure(fmt::format("cannot read {}", path));
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return failure(fmt::format("cannot read {}", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFile) return failure(fmt::format("{} is larger than 1 MiB", path));
  return text;
}

Result<ClientConfig> loadKubeconfig(const KubeconfigSource& source) {
  const std::vector<std::string> files = filesOf(source);
  Merged merged;
  std::string read;
  for (const std::string& path : files) {
    if (source.explicit_path.empty() && !std::filesystem::exists(path)) continue;
    Result<std::string> text = readSmallFile(path);
    if (!text) return failure(std::move(text).error().within("kubeconfig"));
    try {
      mergeFile(path, *text, merged);
    } catch (const YAML::Exception& e) {
      // The text of the exception names the line, never the value.
      return failure(fmt::format("kubeconfig {}: line {}: not valid YAML", path, e.mark.line + 1));
    }
    read += read.empty() ? path : ", " + path;
  }
  if (read.empty()) {
    return failure(fmt::format("no kubeconfig found (searched: {})",
                               files.empty() ? "nothing" : fmt::format("{}", files.front())));
  }
  try {
    Result<ClientConfig> config = configOf(merged, source);
    if (!config) return failure(std::move(config).error().within("kubeconfig " + read));
    return config;
  } catch (const YAML::Exception& e) {
    return failure(fmt::format("kubeconfig {}: line {}: wrong type", read, e.mark.line + 1));
  }
}

Result<ClientConfig> inClusterConfig(const InClusterSource& source) {
  if (source.service_host.empty() || source.service_port.empty()) {
    return failure("not inside a cluster: no address of the kubernetes service in the environment");
  }
  ClientConfig config;
  const bool ipv6 = source.service_host.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + source.service_host + "]" : source.service_host;
  config.server = fmt::format("https://{}:{}", host, source.service_port);
  config.token_file = source.directory + "/token";
  config.ca.path = source.directory + "/ca.crt";
  if (Result<std::string> token = readSmallFile(config.token_file); !token) {
    return failure(std::move(token).error().within("service account"));
  }
  if (Result<std::string> ns = readSmallFile(source.directory + "/namespace"); ns && !ns->empty()) {
    config.name_space = *std::move(ns);
  }
  return config;
}

}  // namespace mbcas::kube
