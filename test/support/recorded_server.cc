#include "test/support/recorded_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "mbcas/base/time.h"
#include "mbcas/kube/websocket.h"

namespace mbcas::test {
namespace {

using nlohmann::json;

// Replaces "@-65" by a time, and {"$file": NAME, "times": TEXT} by that file's text, in which TEXT
// becomes the time 20 days ago.
void setTimes(json& value, WallTime now) {
  if (value.is_object() && value.contains("$file")) {
    std::ostringstream file;
    file << std::ifstream(value["$file"].get<std::string>()).rdbuf();
    std::string text = file.str();
    const std::string old = value["times"];
    const std::string time = formatRfc3339(now - std::chrono::days(20) - std::chrono::hours(1));
    for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
      text.replace(at, old.size(), time);
    }
    value = text;
  } else if (value.is_structured()) {
    for (json& child : value) setTimes(child, now);
  } else if (value.is_string()) {
    const std::string text = value.get<std::string>();
    if (text.starts_with("@-")) {
      value = formatRfc3339(now - std::chrono::seconds(std::stoll(text.substr(2))));
    }
  }
}

// "a=b,c=d,e" against what an object says; "e" only has to be there.
bool matches(const std::string& selector,
             const std::function<std::string(const std::string&)>& of) {
  for (std::size_t at = 0; at < selector.size();) {
    const std::size_t end = std::min(selector.find(',', at), selector.size());
    const std::string term = selector.substr(at, end - at);
    const std::size_t equals = term.find('=');
    const std::string value = of(term.substr(0, equals));
    if (equals == std::string::npos ? value.empty() : value != term.substr(equals + 1))
      return false;
    at = end + 1;
  }
  return true;
}

std::string fieldOf(const json& object, const std::string& path) {
  const std::size_t dot = path.find('.');
  const json part = object.value(path.substr(0, dot), json());
  if (dot != std::string::npos) return part.is_object() ? fieldOf(part, path.substr(dot + 1)) : "";
  return part.is_string() ? part.get<std::string>() : "";
}

json status(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
          {"reason", reason}, {"code", code},       {"message", message}};
}

}  // namespace

struct RecordedServer::Impl {
  json content;
  httplib::Server server;
  std::thread thread;
  std::filesystem::path folder;
  std::string kubeconfig;
  std::atomic<bool> hangs = false;
  std::atomic<bool> ends = false;
  mutable std::mutex mutex;
  std::vector<std::string> requests;
  std::vector<std::string> impersonations;

  void answer(httplib::Response& response, const json& body, int code = 200) {
    response.status = code;
    response.set_content(body.dump(), "application/json");
  }

  // A program in a container that prints this and ends well, over WebSocket.
  static void program(const httplib::Request& request, httplib::Response& response,
                      const std::string& output) {
    const auto message = [](char channel, std::string_view content) {
      std::string frame = "\x82\x7f";
      const std::uint64_t size = content.size() + 1;
      // As long as it gets: shorter forms are for short messages only.
      for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift);
      if (size < 126)
        frame = {'\x82', static_cast<char>(size)};
      else if (size < 0x10000)
        frame = {'\x82', '\x7e', static_cast<char>(size >> 8), static_cast<char>(size)};
      return frame + channel + std::string(content);
    };
    std::string line = output;
    std::replace(line.begin(), line.end(), '\n', ' ');
    const std::string stream = message(1, "") + message(1, line + "\n") +
                               message(3, R"({"metadata":{},"status":"Success"})");
    response.status = 101;
    response.set_header("Upgrade", "websocket");
    response.set_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io");
    response.set_header("Sec-WebSocket-Accept",
                        kube::webSocketAccept(request.get_header_value("Sec-WebSocket-Key")));
    response.set_content_provider("text/plain",
                                  [stream](std::size_t offset, httplib::DataSink& sink) {
                                    if (offset == 0) sink.write(stream.data(), stream.size());
                                    sink.done();
                                    return true;
                                  });
  }

  void review(const httplib::Request& request, httplib::Response& response) {
    const json attributes = json::parse(request.body)["spec"]["resourceAttributes"];
    std::string what =
        fmt::format("{} {}", attributes.value("verb", ""), attributes.value("resource", ""));
    if (const std::string sub = attributes.value("subresource", ""); !sub.empty())
      what += "/" + sub;
    const json forbidden = content.value("forbidden", json::array());
    // The accounts that somebody acts for may do everything.
    const bool allowed = request.has_header("Impersonate-User") ||
                         std::find(forbidden.begin(), forbidden.end(), what) == forbidden.end();
    answer(response, {{"status", {{"allowed", allowed}}}}, 201);
  }

  // "/api/v1/namespaces/NS/pods/NAME": the objects, or the one.
  void objects(const httplib::Request& request, httplib::Response& response) {
    std::vector<std::string> parts;
    for (std::size_t at = 1; at < request.path.size();) {
      const std::size_t end = std::min(request.path.find('/', at), request.path.size());
      parts.push_back(request.path.substr(at, end - at));
      at = end + 1;
    }
    const std::size_t api = parts.empty() ? 0 : parts[0] == "api" ? 2 : 3;
    std::string prefix;
    for (std::size_t i = 0; i < std::min(api, parts.size()); ++i) prefix += "/" + parts[i];
    std::size_t next = api;
    std::string name_space;
    if (next + 2 < parts.size() && parts[next] == "namespaces") {
      name_space = parts[next + 1];
      next += 2;
    }
    const std::string key = next < parts.size() ? prefix + " " + parts[next] : "";
    const std::string name = next + 1 < parts.size() ? parts[next + 1] : "";
    const json missing =
        status(404, "NotFound", "the server could not find the requested resource");
    if (!content["objects"].contains(key) || next + 2 < parts.size()) {
      return answer(response, missing, 404);
    }
    json items = json::array();
    for (const json& object : content["objects"][key]) {
      const std::string labels = request.get_param_value("labelSelector");
      const std::string fields = request.get_param_value("fieldSelector");
      const json own = object["metadata"].value("labels", json::object());
      if (!name_space.empty() && object["metadata"].value("namespace", "") != name_space) continue;
      if (!matches(labels, [&](const std::string& label) { return own.value(label, ""); }))
        continue;
      if (!matches(fields, [&](const std::string& field) { return fieldOf(object, field); })) {
        continue;
      }
      if (!name.empty() && object["metadata"]["name"] == name) return answer(response, object);
      items.push_back(object);
    }
    if (!name.empty()) {
      return answer(response,
                    status(404, "NotFound", fmt::format("{} \"{}\" not found", parts[next], name)),
                    404);
    }
    answer(response, {{"kind", "List"},
                      {"apiVersion", "v1"},
                      {"metadata", {{"resourceVersion", "1000"}}},
                      {"items", items}});
  }

  void handle(const httplib::Request& request, httplib::Response& response) {
    {
      const std::lock_guard lock(mutex);
      requests.push_back(request.method + " " + request.target);
      if (request.has_header("Impersonate-User")) {
        std::string groups;
        for (std::size_t i = 0; i < request.get_header_value_count("Impersonate-Group"); ++i) {
          groups += (i == 0 ? "" : ",") + request.get_header_value("Impersonate-Group", i);
        }
        impersonations.push_back(fmt::format("{} uid {} in {}",
                                             request.get_header_value("Impersonate-User"),
                                             request.get_header_value("Impersonate-Uid"), groups));
      }
    }
    while (hangs && !ends) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (request.path.ends_with("/selfsubjectaccessreviews")) return review(request, response);
    if (request.has_param("watch")) {
      if (request.has_param("sendInitialEvents")) {
        return answer(response, status(422, "Invalid", "no streaming lists here"), 422);
      }
      response.set_chunked_content_provider(
          "application/json", [this](std::size_t, httplib::DataSink& sink) {
            while (!ends && sink.is_writable()) {
              std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
            sink.done();
            return true;
          });
      return;
    }
    const std::lock_guard lock(mutex);
    if (content["texts"].contains(request.path)) {
      const json& text = content["texts"][request.path];
      if (!text.is_string()) return answer(response, text, text.value("code", 200));
      if (request.has_header("Upgrade")) return program(request, response, text);
      response.set_content(text.get<std::string>(), "text/plain");
      return;
    }
    objects(request, response);
  }
};

RecordedServer::RecordedServer(const std::string& file) : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.content = json::parse(std::ifstream(file));
  setTimes(impl.content, SystemClock().wall());
  const auto any = [&impl](const httplib::Request& request, httplib::Response& response) {
    impl.handle(request, response);
  };
  impl.server.Get(".*", any);
  impl.server.Post(".*", any);
  impl.server.Patch(".*", any);
  impl.server.set_keep_alive_max_count(1);  // stop() would wait for idle connections
  const int port = impl.server.bind_to_any_port("127.0.0.1");
  impl.thread = std::thread([&impl] { impl.server.listen_after_bind(); });
  while (!impl.server.is_running()) std::this_thread::yield();
  std::string pattern = std::filesystem::temp_directory_path() / "mbcas-recorded-XXXXXX";
  impl.folder = ::mkdtemp(pattern.data());
  impl.kubeconfig = impl.folder / "kubeconfig";
  std::ofstream(impl.kubeconfig) << fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
      "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\n"
      "users: [{{name: u, user: {{}}}}]\n"
      "contexts: [{{name: c, context: {{cluster: c, user: u, namespace: shop}}}}]\n",
      port);
}

RecordedServer::~RecordedServer() {
  impl_->ends = true;
  impl_->server.stop();
  impl_->thread.join();
  std::error_code ignored;
  std::filesystem::remove_all(impl_->folder, ignored);
}

const std::string& RecordedServer::kubeconfig() const {
  return impl_->kubeconfig;
}

void RecordedServer::fail(const std::string& path, int code, const std::string& reason,
                          const std::string& message) {
  const std::lock_guard lock(impl_->mutex);
  impl_->content["texts"][path] = status(code, reason, message);
}

void RecordedServer::change(const std::string& patch) {
  const std::lock_guard lock(impl_->mutex);
  impl_->content.merge_patch(json::parse(patch));
}

std::string RecordedServer::content() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->content.dump();
}

void RecordedServer::hang() {
  impl_->hangs = true;
}

std::vector<std::string> RecordedServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

std::vector<std::string> RecordedServer::impersonations() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->impersonations;
}

}  // namespace mbcas::test
