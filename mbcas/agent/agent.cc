#include "mbcas/agent/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "mbcas/agent/allocations.h"
#include "mbcas/agent/inbox.h"
#include "mbcas/agent/outbox.h"
#include "mbcas/agent/pipeline.h"
#include "mbcas/agent/requests.h"
#include "mbcas/agent/startup.h"
#include "mbcas/base/backoff.h"
#include "mbcas/kube/informer.h"
#include "mbcas/kube/types.h"

namespace mbcas::agent {
namespace {

using podallocation::PodAllocation;
using std::chrono::seconds;

constexpr Nanos kLeaseInterval = seconds(10);
constexpr Nanos kLongestCheckDelay = seconds(10);
// A watch costs a request when it is renewed, and nothing else. Bookmarks show that it lives.
constexpr Nanos kWatchTime = std::chrono::minutes(30);
// A dry run renews no Lease, so it sees no marks, and looks for itself.
constexpr Nanos kDryRunRefresh = seconds(30);
constexpr Nanos kPatienceAtTheEnd = seconds(2);
// A loop that stands still for so long was stopped from outside, and heard nothing meanwhile.
constexpr Nanos kStoodStill = seconds(15);
// Samples without which the agent is blind, where they are rare.
constexpr int kSamplesMissed = 5;

// The watches. Handlers only say that something changed; the contents are read from the stores.
class Watches {
  using Keys = std::vector<std::string>;
  using Failed = std::function<void(std::string_view kind, const kube::ApiError& error)>;

 public:
  Watches(kube::Client& client, const AgentOptions& options, const std::function<void()>& changed,
          const Failed& failed)
      : pods(client,
             watch<kube::Pod>(options, failed,
                              {.field_selector = "spec.nodeName=" + options.node_name,
                               // A static pod's cgroup is named by a hash that only they tell.
                               .annotations = Keys{"mbcas.io/", "kubernetes.io/config."}})),
        nodes(client, watch<kube::Node>(options, failed,
                                        {.field_selector = "metadata.name=" + options.node_name,
                                         .annotations = Keys{},
                                         .labels = Keys{}})),
        settings(client, watch<kube::ConfigMap>(
                             options, failed,
                             {.name_space = options.name_space,
                              .field_selector = fmt::format("metadata.name={}", kSettingsName),
                              .annotations = Keys{},
                              .labels = Keys{}})) {
    const auto listen = [&](auto& informer) {
      informer.onChange([changed](const auto&) { changed(); });
    };
    listen(pods);
    listen(nodes);
    listen(settings);
  }

  void start() {
    pods.start();
    nodes.start();
    settings.start();
  }
  // The kinds whose watch has brought something since it last failed.
  std::vector<std::string> working() const {
    std::vector<std::string> kinds;
    const auto look = [&]<class T>(const kube::Informer<T>& informer) {
      if (informer.health().last_error.empty()) kinds.emplace_back(T::kind().plural);
    };
    look(pods);
    look(nodes);
    look(settings);
    return kinds;
  }
  // When each was last heard.
  std::vector<WatchEvidence> evidence() const {
    std::vector<WatchEvidence> out;
    const auto look = [&]<class T>(const kube::Informer<T>& informer) {
      const kube::WatchHealth health = informer.health();
      WatchEvidence& watch = out.emplace_back();
      watch.kind = T::kind().plural;
      if (health.synced) watch.heard = health.progress;
      watch.error = health.last_error;
    };
    look(pods);
    look(nodes);
    look(settings);
    return out;
  }
  bool synced() const { return pods.hasSynced() && nodes.hasSynced() && settings.hasSynced(); }

  kube::Informer<kube::Pod> pods;
  kube::Informer<kube::Node> nodes;
  kube::Informer<kube::ConfigMap> settings;

 private:
  template <class T>
  static kube::WatchOptions watch(const AgentOptions& agent, const Failed& failed,
                                  kube::WatchOptions options) {
    options.watch_time = kWatchTime;
    // Longer than from one bookmark to the next, and so short that a watch that was opened again
    // has brought a bookmark before the agent counts as blind. To open a watch is one request.
    options.idle_timeout = agent.sight.watches / 3;
    options.on_error = [failed](const kube::ApiError& error) { failed(T::kind().plural, error); };
    return options;
  }
};

// So that what stays the same is said once.
class Said {
 public:
  // Whether it differs from what was last said about it.
  bool news(const std::string& about, const std::string& text) {
    return std::exchange(last_[about], text) != text;
  }
  // It is over: the same would be news again. Whether anything had been said.
  bool over(const std::string& about) { return last_.erase(about) > 0; }

 private:
  std::map<std::string, std::string> last_;
};

}  // namespace

class Agent::Impl {
 public:
  Impl(kube::Client& client, std::unique_ptr<kernel::PodSource> source, AgentOptions options)
      : client_(client),
        clock_(client.clock()),
        options_(std::move(options)),
        pipeline_(std::move(source), clock_,
                  {.node_name = options_.node_name,
                   .cpus = options_.cpus,
                   .adaptive = options_.adaptive}),
        outbox_({.seed = std::random_device{}()}),
        allocations_(allocationOptions(options_)),
        watches_(
            client, options_, [changed = changed_] { *changed = true; },
            [this](std::string_view kind, const kube::ApiError& error) {
              inbox_->post([this, kind = std::string(kind), error] { watchFailed(kind, error); });
            }) {}

  ~Impl() { inbox_->close(); }

  Result<void> run() {
    if (const Result<void> good = readSettings(nullptr); !good) return failure(good.error());
    publish({});
    started_ = last_tick_ = clock_.monotonic();
    checker_ = std::jthread([this](const std::stop_token& stop) { checkCluster(stop); });
    MonotonicTime tick = clock_.monotonic();
    while (!ended_) {
      const MonotonicTime now = clock_.monotonic();
      if (now >= tick) tick = now + this->tick(now);
      send(clock_.monotonic());
      read(clock_.monotonic());
      renew(clock_.monotonic());
      if (!ended_) wait(tick);
    }
    checker_ = {};
    finish();
    inbox_->close();
    return result_;
  }

  void stop() {
    inbox_->post([this] { ended_ = true; });
  }

  Result<std::string> ask(std::function<std::string(const View&, const AgentCounters&)> show,
                          Nanos timeout) {
    struct Answer {
      std::mutex mutex;
      std::condition_variable arrived;
      std::optional<std::string> text;
    };
    const auto answer = std::make_shared<Answer>();
    inbox_->post([this, answer, show = std::move(show)] {
      std::string text = show(pipeline_.view(), counters());
      const std::scoped_lock lock(answer->mutex);
      answer->text = std::move(text);
      answer->arrived.notify_one();
    });
    std::unique_lock lock(answer->mutex);
    if (!answer->arrived.wait_for(lock, timeout, [&] { return answer->text.has_value(); })) {
      return failure("the agent does not answer in time");
    }
    return *std::move(answer->text);
  }

  const View& view() { return pipeline_.view(); }

 private:
  // ---- The cluster ----

  // On a thread of its own, which ends with it: it waits for answers.
  void checkCluster(const std::stop_token& stop) {
    std::mt19937_64 random(std::random_device{}());
    std::mutex mutex;
    std::condition_variable_any woken;
    for (int failures = 1; !stop.stop_requested(); ++failures) {
      const ClusterCheck check =
          agent::checkCluster(client_, options_.node_name, options_.name_space, options_.dry_run);
      inbox_->post([this, check] { checked(check); });
      if (check.verdict != ClusterCheck::Verdict::kUnreachable) return;
      const double chance = std::uniform_real_distribution<double>(0, 1)(random);
      std::unique_lock lock(mutex);
      woken.wait_for(lock, stop, std::min(kLongestCheckDelay, backoff(failures, chance)),
                     [] { return false; });
    }
  }

  void checked(const ClusterCheck& check) {
    switch (check.verdict) {
      case ClusterCheck::Verdict::kGood:
        recovered("the cluster");
        watches_.start();
        connected_ = true;
        return;
      case ClusterCheck::Verdict::kUnreachable:
        return trouble("the cluster", check.message);
      case ClusterCheck::Verdict::kWrong:
        result_ = failure(check.message);
        ended_ = true;
    }
  }

  void watchFailed(const std::string& kind, const kube::ApiError& error) {
    // An object that is passed over is reported once, and the watch goes on.
    if (error.reason == kube::ApiError::kUnreadable) return complain(error.message);
    trouble("watching " + kind, error.describe());
  }

  // The world of the pipeline, if anything of it changed.
  void look() {
    if (!watches_.synced() || !changed_->exchange(false)) return;
    World world;
    world.pods = allocations_.follow(watches_.pods.list(), clock_.monotonic());
    if (!allocations_.complete()) {
      *changed_ = true;  // it is looked again when they have been read
      return;
    }
    world.allocations = allocations_.list();
    const auto nodes = watches_.nodes.list();
    if (!nodes.empty()) world.node = nodes.front();
    const auto maps = watches_.settings.list();
    std::ignore = readSettings(maps.empty() ? nullptr : maps.front().get());
    publish(std::move(world));
    if (std::exchange(settled_, true)) return;
    say(fmt::format("at work on node {}: {} pods, {} PodAllocations", options_.node_name,
                    watches_.pods.size(), allocations_.size()));
    if (options_.on_settled) options_.on_settled();
  }

  void publish(World world) {
    world.settings = settings_;
    pipeline_.update(std::move(world));
  }

  // What the ConfigMap says goes over what flags say. Settings that make no sense change nothing.
  Result<void> readSettings(const kube::ConfigMap* map) {
    const std::string doing =
        fmt::format("applying ConfigMap {}/{}", options_.name_space, kSettingsName);
    policy::SettingsData data = options_.settings;
    if (map != nullptr) {
      for (const kube::KeyValue& entry : map->data) {
        data.insert_or_assign(entry.key.string(), entry.value.string());
      }
    }
    Result<policy::ParsedSettings> parsed = policy::parseSettings(data);
    if (!parsed) {
      trouble(doing, parsed.error().message());
      return failure(parsed.error());
    }
    recovered(doing);
    settings_ = parsed->settings;
    return {};
  }

  // ---- Ticks ----

  // Returns when to tick again.
  Nanos tick(MonotonicTime now) {
    look();
    const Outcome& outcome = pipeline_.tick();
    for (const std::string& note : outcome.notes) say(note);
    tellLayouts();
    watchSight(now);
    askHttpLoop(now);
    for (const std::string& uid : outcome.ended) {
      outbox_.forget(uid);
      lines_.erase(uid);
      said_.over(uid);
    }
    if (!outcome.wishes.empty()) take(outcome.wishes, now);
    if (settled_ && outcome.sampled && options_.samples > 0 && ++samples_ >= options_.samples) {
      ended_ = true;
    }
    return outcome.next;
  }

  void take(const std::vector<Wish>& wishes, MonotonicTime now) {
    std::map<std::string_view, const Wish*> by_uid;
    for (const Wish& wish : wishes) by_uid.emplace(wish.uid, &wish);
    const View& view = pipeline_.view();
    for (const PodView& pod : view.pods) {
      const auto wish = by_uid.find(pod.uid);
      if (wish == by_uid.end()) continue;
      if (options_.dry_run) {
        if (options_.decision) options_.decision(decisionJson(view, pod));
      } else {
        lines_[pod.uid] = decisionJson(view, pod);
        outbox_.put(*wish->second, now);
      }
    }
  }

  // Where pods are found, and how: each layout once.
  void tellLayouts() {
    static constexpr std::size_t kMost = 16;  // a node has one; nested nodes have more
    const sense::SenseCounters& counters = pipeline_.counters();
    const std::uint64_t found = counters.pods_started + counters.containers_started;
    if (std::exchange(layouts_of_, found) == found) return;
    for (const std::string& layout : pipeline_.layouts()) {
      if (layouts_.size() < kMost && layouts_.insert(layout).second) {
        say("pods are found in " + layout);
      }
    }
  }

  // ---- Sight ----

  void watchSight(MonotonicTime now) {
    const Nanos stood_still = std::max(kStoodStill, settings_.sample_interval * 2);
    if (now - std::exchange(last_tick_, now) > stood_still) answers_.forget();
    Evidence evidence{.started = started_,
                      .watches = watches_.evidence(),
                      .answering = answers_.since(),
                      .cgroups = pipeline_.cgroups()};
    SightBounds bounds = options_.sight;
    bounds.cgroups = std::max(bounds.cgroups, settings_.sample_interval * kSamplesMissed);
    const Sight::State before = sight_.state;
    sight_ = agent::look(evidence, bounds, now);
    if (sight_.state == before) return;
    if (sight_.state == Sight::State::kBlind) {
      complain(fmt::format(
          "blind: {}. Until that changes the agent publishes nothing and does not renew its Lease; "
          "after {} s the controller raises limits below the declared ones back to them. {}",
          sight_.what, std::chrono::ceil<seconds>(settings_.silence).count(), sight_.remedy));
    } else if (before == Sight::State::kBlind) {
      say("sees again");
    }
  }

  // Whether the HTTP loop still runs what it is given.
  void askHttpLoop(MonotonicTime now) {
    if (http_loop_asked_ || now < ask_http_loop_at_) return;
    ask_http_loop_at_ = now + kLeaseInterval;
    http_loop_asked_ = now;
    client_.loop().post(
        [this, inbox = inbox_] { inbox->post([this] { http_loop_asked_.reset(); }); });
  }

  Health health() const {
    Health health{.sight = sight_, .refused = refused_};
    if (http_loop_asked_) health.http_loop_silent = clock_.monotonic() - *http_loop_asked_;
    return health;
  }

  // ---- Writes ----

  void send(MonotonicTime now) {
    if (!connected_ || !sight_.seeing()) return;
    while (std::optional<Wish> wish = outbox_.take(now)) {
      ++under_way_;
      auto line = lines_.extract(wish->uid);
      client_.send(writeCall(*wish), [this, inbox = inbox_, uid = wish->uid,
                                      pod = wish->spec.name_space + "/" + wish->spec.pod_name,
                                      line = line ? std::move(line.mapped()) : std::string()](
                                         const kube::ApiResult<std::string>& body) mutable {
        std::optional<kube::ApiError> error;
        if (!body) error = body.error();
        inbox->post([this, uid = std::move(uid), pod = std::move(pod), line = std::move(line),
                     error = std::move(error), object = decoded(body)] {
          if (object) allocations_.wrote(uid, *object, clock_.monotonic());
          *changed_ = true;
          written(uid, pod, line, error);
        });
      });
    }
  }

  // ---- What the objects say ----

  static Allocations::Options allocationOptions(const AgentOptions& options) {
    Allocations::Options out{.seed = std::random_device{}()};
    if (options.dry_run) out.refresh = kDryRunRefresh;
    return out;
  }

  // On the HTTP loop. An answer that cannot be read is none.
  static std::optional<Allocations::Object> decoded(const kube::ApiResult<std::string>& body) {
    if (!body) return std::nullopt;
    auto object = kube::decodeObject<PodAllocation>(*body);
    if (!object) return std::nullopt;
    return *std::move(object);
  }

  void read(MonotonicTime now) {
    if (!connected_) return;
    while (const auto read = allocations_.take(now)) {
      client_.send(readCall(*read), [this, inbox = inbox_,
                                     uid = read->uid](const kube::ApiResult<std::string>& body) {
        std::optional<kube::ApiError> error;
        if (!body) error = body.error();
        inbox->post([this, uid, error = std::move(error), object = decoded(body)] {
          wasRead(uid, object, error);
        });
      });
    }
  }

  void wasRead(const std::string& uid, const std::optional<Allocations::Object>& object,
               const std::optional<kube::ApiError>& error) {
    const MonotonicTime now = clock_.monotonic();
    *changed_ = true;
    if (object) {
      allocations_.found(uid, *object, now);
    } else if (error && error->notFound()) {
      allocations_.missing(uid, now);
    } else if (!error) {
      // It is there, and the agent goes on as if it were not.
      if (said_.news("reading " + uid, "unreadable")) {
        complain(fmt::format("PodAllocation {} cannot be read", uid));
      }
      allocations_.missing(uid, now);
    } else {
      allocations_.failed(uid, error->retry_after, now);
      return trouble("reading PodAllocations", error->describe());
    }
    recovered("reading PodAllocations");
  }

  void written(const std::string& uid, const std::string& pod, const std::string& line,
               const std::optional<kube::ApiError>& error) {
    --under_way_;
    const MonotonicTime now = clock_.monotonic();
    const WriteResult result = error ? writeResultOf(*error) : WriteResult::kDone;
    outbox_.done(uid, result, now, error ? error->retry_after : std::nullopt);
    // It will be tried again, unless there is a newer one by then.
    if (result == WriteResult::kRefused || result == WriteResult::kFailed) {
      lines_.try_emplace(uid, line);
    }
    if (under_way_ == 0 && outbox_.waiting() == 0) lines_.clear();  // of pods that have ended
    switch (result) {
      case WriteResult::kDone:
        ++counters_.written;
        said_.over(uid);
        answers(now);
        if (options_.decision && !line.empty()) options_.decision(line);
        return;
      case WriteResult::kGone:
        ++counters_.gone;
        return;
      case WriteResult::kRefused:
        ++counters_.refused;
        if (said_.news(uid, error->describe())) {
          complain(fmt::format("the API server refused the decision for {}: {}", pod,
                               error->describe()));
        }
        return;
      case WriteResult::kFailed:
        ++counters_.failed;
        trouble("writing", error->describe());
        return;
    }
  }

  // ---- The Lease ----

  void renew(MonotonicTime now) {
    if (!connected_ || !sight_.seeing() || options_.dry_run || renewing_ || now < renew_at_) return;
    renewing_ = true;
    // Agents that started together spread over the interval with their second renewal, and no later
    // coincidence lasts.
    renew_at_ =
        now + part(kLeaseInterval, counters_.renewed == 0 ? chance() : 0.95 + chance() / 10);
    client_.send(leaseCall(options_.name_space, options_.node_name, options_.holder,
                           settings_.silence, clock_.wall()),
                 [this, inbox = inbox_](const kube::ApiResult<std::string>& body) {
                   std::optional<kube::ApiError> error;
                   if (!body) error = body.error();
                   inbox->post([this, error = std::move(error), marks = marksOf(body)] {
                     if (!error) allocations_.renewed(marks, clock_.monotonic());
                     renewed(error);
                   });
                 });
  }

  // On the HTTP loop.
  static std::string marksOf(const kube::ApiResult<std::string>& body) {
    if (!body) return {};
    const auto lease = kube::decodeObject<kube::Lease>(*body);
    if (!lease) return {};
    return std::string(
        kube::find((*lease)->meta.annotations, podallocation::kChangedAnnotation).value_or(""));
  }

  void renewed(const std::optional<kube::ApiError>& error) {
    renewing_ = false;
    const MonotonicTime now = clock_.monotonic();
    if (!error) {
      ++counters_.renewed;
      answers_.answered(now);
      refused_.clear();
      lease_failures_ = 0;
      recovered("renewing the Lease");
      answers(now);
      for (const std::string& kind : watches_.working()) recovered("watching " + kind);
      return;
    }
    trouble("renewing the Lease", error->describe());
    if (error->transient()) {
      answers_.failed(now);
    } else {
      answers_.answered(now);
      refused_ = error->describe();
    }
    // Sooner than its turn: silence gives the pods their old limits back. But not sooner than the
    // server asks for.
    renew_at_ = now + std::min(kLeaseInterval, std::max(backoff(++lease_failures_, chance()),
                                                        error->retry_after.value_or(Nanos(0))));
  }

  // The server has accepted something.
  void answers(MonotonicTime now) {
    if (recovered("writing")) outbox_.answers(now);
  }

  // ---- Waiting, and the end ----

  void wait(MonotonicTime tick) {
    const MonotonicTime now = clock_.monotonic();
    MonotonicTime until = tick;
    if (connected_ && sight_.seeing() && !options_.dry_run) {
      if (const auto next = outbox_.next(now)) until = std::min(until, *next);
      if (!renewing_) until = std::min(until, renew_at_);
    }
    if (const auto next = connected_ ? allocations_.next(now) : std::nullopt) {
      until = std::min(until, *next);
    }
    const Nanos left = std::max(Nanos(0), until - now);
    const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                           .tv_nsec = left.count() % 1'000'000'000};
    const auto descriptor = [](const std::optional<LocalSocket>& socket) {
      return socket ? socket->fd() : -1;
    };
    std::array<pollfd, 4> fds{
        {{.fd = inbox_->fd(), .events = POLLIN, .revents = 0},
         {.fd = options_.signals, .events = POLLIN, .revents = 0},
         {.fd = descriptor(options_.socket), .events = POLLIN, .revents = 0},
         {.fd = descriptor(options_.probe_socket), .events = POLLIN, .revents = 0}}};
    if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return;
    if (fds[0].revents != 0) inbox_->run();
    if (fds[1].revents != 0) takeSignal();
    if (fds[2].revents != 0) options_.socket->serve([this] { return stateJson(pipeline_.view()); });
    if (fds[3].revents != 0) options_.probe_socket->serve([this] { return probeAnswer(health()); });
  }

  void takeSignal() {
    signalfd_siginfo info{};
    if (::read(options_.signals, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGUSR1) {
      if (options_.state) options_.state(stateJson(pipeline_.view()));
      return;
    }
    say("stops");
    ended_ = true;
  }

  // What is on its way to the server arrives or not; then the log says so.
  void finish() {
    const MonotonicTime until = clock_.monotonic() + kPatienceAtTheEnd;
    while (under_way_ > 0) {
      const Nanos left = until - clock_.monotonic();
      if (left <= Nanos(0)) return;
      pollfd readable{.fd = inbox_->fd(), .events = POLLIN, .revents = 0};
      ::poll(&readable, 1,
             static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
      inbox_->run();
    }
  }

  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  static Nanos part(Nanos time, double share) {
    return Nanos(static_cast<std::int64_t>(static_cast<double>(time.count()) * share));
  }

  AgentCounters counters() const {
    AgentCounters counters = counters_;
    counters.waiting = outbox_.waiting();
    counters.blind = sight_.state == Sight::State::kBlind;
    return counters;
  }

  void say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  void complain(const std::string& line) const {
    if (options_.log_error) options_.log_error(line);
  }
  void trouble(const std::string& doing, const std::string& error) {
    if (said_.news(doing, error)) complain(fmt::format("{}: {}", doing, error));
  }
  bool recovered(const std::string& doing) {
    const bool had_trouble = said_.over(doing);
    if (had_trouble) say(doing + ": works again");
    return had_trouble;
  }

  kube::Client& client_;
  const Clock& clock_;
  AgentOptions options_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  const std::shared_ptr<std::atomic<bool>> changed_ = std::make_shared<std::atomic<bool>>(true);
  Pipeline pipeline_;
  Outbox outbox_;
  Allocations allocations_;
  std::mt19937_64 random_{std::random_device{}()};
  Said said_;
  policy::Settings settings_;
  std::map<std::string, std::string, std::less<>> lines_;  // of the log, by UID: to be written
  AgentCounters counters_;
  Result<void> result_;
  Sight sight_;
  Answers answers_;
  std::string refused_;  // what the server last said to the Lease, if it refused it
  MonotonicTime started_{};
  MonotonicTime last_tick_{};
  MonotonicTime ask_http_loop_at_{};
  std::optional<MonotonicTime> http_loop_asked_{};  // and has not answered
  std::set<std::string> layouts_;                   // that were reported
  std::uint64_t layouts_of_ = 0;                    // cgroups found until then
  MonotonicTime renew_at_{};
  int lease_failures_ = 0;
  int under_way_ = 0;
  int samples_ = 0;
  bool renewing_ = false;
  bool connected_ = false;  // the cluster has what is needed
  bool settled_ = false;    // and the pipeline knows it
  bool ended_ = false;
  Watches watches_;
  std::jthread checker_;
};

Agent::Agent(kube::Client& client, std::unique_ptr<kernel::PodSource> source, AgentOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(source), std::move(options))) {}
Agent::~Agent() = default;

Result<void> Agent::run() {
  return impl_->run();
}
void Agent::stop() {
  impl_->stop();
}
Result<std::string> Agent::ask(std::function<std::string(const View&, const AgentCounters&)> show,
                               Nanos timeout) {
  return impl_->ask(std::move(show), timeout);
}
const View& Agent::view() {
  return impl_->view();
}

}  // namespace mbcas::agent
