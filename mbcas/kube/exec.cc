#include "mbcas/kube/exec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <utility>

#include "mbcas/kube/websocket.h"

namespace mbcas::kube {
namespace {

// The first byte of each message.
constexpr char kOut = 1;
constexpr char kErr = 2;
constexpr char kStatus = 3;
constexpr std::size_t kLongestComplaint = 4 << 10;
constexpr std::size_t kLongestStatus = 64 << 10;
constexpr std::string_view kV5 = "v5.channel.k8s.io";
constexpr std::string_view kV4 = "v4.channel.k8s.io";

std::uint32_t randomWord() {
  return std::random_device()();
}

WebSocketKey randomKey() {
  WebSocketKey key{};
  std::random_device random;
  for (unsigned char& byte : key) byte = static_cast<unsigned char>(random());
  return key;
}

bool sameWord(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

Result<void> checkAnswer(const HttpAnswer& answer, const std::string& accept) {
  if (!sameWord(answer.header("upgrade"), "websocket") ||
      answer.header("sec-websocket-accept") != accept) {
    return failure("the server changed to a protocol that is not WebSocket");
  }
  const std::string_view chosen = answer.header("sec-websocket-protocol");
  if (chosen != kV5 && chosen != kV4) {
    return failure("the server speaks neither v5.channel.k8s.io nor v4.channel.k8s.io");
  }
  return {};
}

ApiError broken(std::string message) {
  ApiError error;
  error.reason = ApiError::kBroken;
  error.message = std::move(message);
  return error;
}

}  // namespace

ApiResult<int> readExecStatus(std::string text) {
  bool success = false;
  std::optional<int> code;
  ApiError error;
  JsonParser parser;
  const Result<void> parsed = parser.parse(text, [&](JsonCursor root) {
    root.members([&](std::string_view key, JsonCursor value) {
      if (key == "status") success = value.text() == "Success";
      if (key == "reason") error.reason = value.text();
      if (key == "message") error.message = value.text();
      if (key == "code") error.code = static_cast<int>(value.integer());
      if (key != "details") return;
      value.members([&](std::string_view detail, JsonCursor causes) {
        if (detail != "causes") return;
        causes.elements([&](JsonCursor cause) {
          std::string reason;
          std::string message;
          cause.members([&](std::string_view field, JsonCursor content) {
            if (field == "reason") reason = content.text();
            if (field == "message") message = content.text();
          });
          int number = 0;
          const char* const end = message.data() + message.size();
          if (reason == "ExitCode" && std::from_chars(message.data(), end, number).ptr == end) {
            code = number;
          }
        });
      });
    });
  });
  if (!parsed) return apiFailure(broken("not an exit status: " + text.substr(0, 200)));
  if (success) return 0;
  if (error.reason == "NonZeroExitCode" && code && *code != 0) return *code;
  if (error.reason.empty()) error.reason = "InternalError";
  std::ranges::replace(error.message, '\n', ' ');
  if (error.message.size() > 1024) error.message.resize(1024);
  return apiFailure(std::move(error));
}

// On the loop; the call holds it.
struct Exec::Stream {
  Stream(Client& of, ExecHandlers told, std::string expected)
      : client(of),
        handlers(std::move(told)),
        accept(std::move(expected)),
        reader([this](const WebSocketReader::Message& message) { return take(message); }) {}

  Client& client;
  ExecHandlers handlers;
  std::string accept;
  WebSocketReader reader;
  Client::Id call = 0;
  std::string complaint{};
  std::string status{};
  bool given_up = false;

  void answer(WebSocketOp op, std::string_view payload) const {
    client.write(call, webSocketFrame(op, payload, randomWord()));
  }

  Result<void> take(const WebSocketReader::Message& message) {
    switch (message.op) {
      case WebSocketOp::kPing:
        answer(WebSocketOp::kPong, message.payload);
        return {};
      case WebSocketOp::kClose:
        // With the status code, which are the first two bytes.
        answer(WebSocketOp::kClose, message.payload.substr(0, 2));
        return {};
      case WebSocketOp::kPong:
      case WebSocketOp::kContinuation:
        return {};
      case WebSocketOp::kText:
      case WebSocketOp::kBinary:
        break;
    }
    if (message.payload.empty()) return {};
    const std::string_view content = message.payload.substr(1);
    switch (message.payload.front()) {
      case kOut:
        if (!content.empty() && !given_up && handlers.out) handlers.out(content);
        break;
      case kErr:
        complaint += content.substr(0, kLongestComplaint - complaint.size());
        break;
      case kStatus:
        if (status.size() + content.size() > kLongestStatus) {
          return failure("the exit status of the program is too long");
        }
        status += content;
        break;
      default:  // v5: the end of a channel
        break;
    }
    return {};
  }

  void end(ApiResult<std::string> ended) {
    if (given_up) return;
    const auto done = std::exchange(handlers.done, nullptr);
    if (!done) return;
    // Once there is a status, it does not matter how the connection ended.
    if (!status.empty()) return done(readExecStatus(std::move(status)), std::move(complaint));
    if (!ended) return done(apiFailure(std::move(ended).error()), std::move(complaint));
    done(apiFailure(broken("the connection ended before the program did")), std::move(complaint));
  }
};

Exec::Exec(Client& client, ExecRequest request, ExecHandlers handlers) : client_(client) {
  const std::string key = webSocketKey(randomKey());
  stream_ = std::make_shared<Stream>(client, std::move(handlers), webSocketAccept(key));
  Call call{
      .path = fmt::format("/api/v1/namespaces/{}/pods/{}/exec", request.name_space, request.pod),
      .query = {{"stdout", "true"}, {"stderr", "true"}},
      .accept = "*/*",
      .timeout = Nanos(0),
      .idle_timeout = request.idle_timeout,
      .retry = false,
      .gzip = false,
      .upgrade = "websocket",
      .headers = {"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + key,
                  fmt::format("Sec-WebSocket-Protocol: {}, {}", kV5, kV4)}};
  if (!request.container.empty()) call.query.emplace_back("container", request.container);
  for (std::string& word : request.command) call.query.emplace_back("command", std::move(word));
  call.upgraded = [accept = stream_->accept](const HttpAnswer& answer) {
    return checkAnswer(answer, accept);
  };
  call.receive = [stream = stream_](std::string_view piece) -> Result<void> {
    if (stream->given_up) return failure("given up");
    return stream->reader.receive(piece);
  };
  // On the loop, so that nothing comes before the stream knows its call.
  client.loop().runAndWait([&] {
    call_ = client.send(std::move(call), [stream = stream_](ApiResult<std::string> ended) {
      stream->end(std::move(ended));
    });
    stream_->call = call_;
  });
}

Exec::~Exec() {
  client_.loop().runAndWait([this] {
    stream_->given_up = true;
    stream_->handlers = {};
  });
  client_.cancel(call_);
}

}  // namespace mbcas::kube
