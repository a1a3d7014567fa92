#include "tools/hollow/node.h"

#include <utility>

namespace mbcas::hollow {

HollowNode::HollowNode(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      kernel_(clock),
      kubelet_client_(loop_, options_.kubelet, clock, {.user_agent = "hollow-kubelet"}) {
  kubelet_.emplace(kubelet_client_, test::FakeKubelet::Options{
                                        .node = options_.name,
                                        .workers = 4,
                                        .cpus = options_.cpus,
                                        .watcher = [this](const auto& change) { follow(change); }});
}

HollowNode::~HollowNode() {
  stopAgent();
}

// The kubelet's part that is not on paper: what it reports is in the cgroup.
void HollowNode::follow(const kube::TypedChange<kube::Pod>& change) {
  const std::string uid = change.latest().meta.uid.string();
  const auto limitOf =
      [](const std::shared_ptr<const kube::Pod>& pod) -> std::optional<Millicores> {
    const kube::ContainerStatus* const status = pod ? pod->status("main") : nullptr;
    return status == nullptr ? std::nullopt : status->limits.cpu();
  };
  const std::optional<Millicores> before = limitOf(change.before);
  const std::optional<Millicores> after = limitOf(change.after);
  if (!after) {
    if (change.after) return;  // not started yet
    kernel_.end(uid);
    if (before) --running_;
    if (options_.ledger != nullptr) options_.ledger->ended(uid);
    return;
  }
  if (before == after) return;
  if (!before) {
    kernel_.start(uid, test::fakeContainerId(uid, "main"), *after);
    kernel_.load(uid, options_.load);
    ++running_;
  }
  kernel_.setLimit(uid, *after);
  if (options_.ledger != nullptr) options_.ledger->inForce(uid, *after, clock_.wall());
}

void HollowNode::startAgent() {
  settled_ = false;
  agent_client_ = std::make_unique<kube::Client>(
      loop_, options_.agent, clock_,
      kube::ClientOptions{.user_agent = "hollow-agent", .metrics = options_.metrics});
  agent::AgentOptions options{.node_name = options_.name,
                              .holder = options_.name,
                              .cpus = static_cast<unsigned>(options_.cpus),
                              .log_error = options_.complain,
                              .on_settled = [this] { settled_ = true; }};
  if (options_.ledger != nullptr) {
    options.decision = [ledger = options_.ledger](const std::string& line) {
      ledger->decided(line);
    };
  }
  agent_ = std::make_unique<agent::Agent>(*agent_client_, kernel_.source(), std::move(options));
  agent_thread_ = std::thread([this] {
    const Result<void> ended = agent_->run();
    if (!ended && options_.complain) options_.complain(ended.error().message());
  });
}

void HollowNode::stopAgent() {
  if (!agent_thread_.joinable()) return;
  agent_->stop();
  agent_thread_.join();
  agent_.reset();
  agent_client_.reset();
}

}  // namespace mbcas::hollow
