// What a server answers to a request for WebSocket, and what it sends then: any chunking of the
// bytes gives the same answer, the same messages and the same verdict, within their bounds, and
// nothing crashes. So does the end of a program. The first byte seeds the chunking.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "mbcas/kube/exec.h"
#include "mbcas/kube/http_answer.h"
#include "mbcas/kube/websocket.h"

namespace {

using namespace mbcas;
using namespace mbcas::kube;

constexpr std::size_t kLongest = 4096;

struct Seen {
  int status = 0;
  std::string body;
  bool complete = false;
  std::vector<std::pair<WebSocketOp, std::string>> messages;
  bool closed = false;
  std::string error;
  bool operator==(const Seen&) const = default;
};

template <class Feed>
void inPieces(std::string_view bytes, unsigned seed, const Feed& feed) {
  while (!bytes.empty()) {
    seed = seed * 1103515245 + 12345;
    const std::string_view piece = bytes.substr(0, 1 + (seed >> 16) % 100);
    if (!feed(piece)) return;
    bytes.remove_prefix(piece.size());
  }
}

Seen readAnswer(std::string_view bytes, unsigned seed) {
  Seen seen;
  HttpAnswer answer([&](int /*status*/, std::string_view piece) {
    seen.body += piece;
    return true;
  });
  inPieces(bytes, seed, [&](std::string_view piece) {
    const Result<bool> taken = answer.receive(piece);
    if (!taken) seen.error = taken.error().message();
    return taken.has_value();
  });
  seen.status = answer.status();
  seen.complete = answer.complete();
  if (seen.error.empty() && !answer.finish()) seen.error = "ends too early";
  return seen;
}

Seen readMessages(std::string_view bytes, unsigned seed) {
  Seen seen;
  WebSocketReader reader(
      [&](const WebSocketReader::Message& message) -> Result<void> {
        if (message.payload.size() > kLongest) std::abort();
        seen.messages.emplace_back(message.op, message.payload);
        return {};
      },
      kLongest);
  inPieces(bytes, seed, [&](std::string_view piece) {
    const Result<void> taken = reader.receive(piece);
    if (!taken) seen.error = taken.error().message();
    return taken.has_value();
  });
  seen.closed = reader.closed();
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Bytes one by one against some at a time.
  Seen answer = readAnswer(bytes, data[0]);
  if (answer != readAnswer(bytes, data[0] + 1000U)) std::abort();
  if (readMessages(bytes, data[0]) != readMessages(bytes, data[0] + 1000U)) std::abort();
  (void)readExecStatus(std::string(bytes));
  return 0;
}
