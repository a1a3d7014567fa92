#include "mbcas/kube/leader.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "mbcas/base/json_writer.h"
#include "mbcas/base/time.h"
#include "mbcas/kube/client.h"
#include "mbcas/kube/metrics.h"

namespace mbcas::kube {
namespace {

using std::chrono::seconds;

constexpr double kJitter = 1.2;  // a candidate waits one to 2.2 retry periods

LeaseRecord recordOf(const Lease& lease) {
  return {lease.holder.string(), lease.duration_seconds, lease.transitions,
          lease.acquired,        lease.renewed,          lease.meta.resource_version.string()};
}

std::string bodyOf(const LeaseRecord& record, const std::string& name_space,
                   const std::string& name) {
  std::string body;
  JsonWriter json(body);
  json.beginObject();
  json.key("apiVersion").value("coordination.k8s.io/v1").key("kind").value("Lease");
  json.key("metadata").beginObject();
  json.key("name").value(name).key("namespace").value(name_space);
  if (!record.resource_version.empty()) json.key("resourceVersion").value(record.resource_version);
  json.endObject();
  json.key("spec").beginObject();
  json.key("holderIdentity").value(record.holder);
  json.key("leaseDurationSeconds").value(record.duration_seconds);
  json.key("leaseTransitions").value(record.transitions);
  json.key("acquireTime").value(formatRfc3339(record.acquired, TimePrecision::kMicros));
  json.key("renewTime").value(formatRfc3339(record.renewed, TimePrecision::kMicros));
  json.endObject().endObject();
  return body;
}

class LeaseClient final : public LeaseStorage {
 public:
  LeaseClient(Client& client, std::string name_space, std::string name, Nanos timeout)
      : client_(client),
        name_space_(std::move(name_space)),
        name_(std::move(name)),
        timeout_(timeout) {}

  ApiResult<LeaseRecord> read() override {
    return exchange({.path = Lease::kind().path(name_space_, name_)});
  }
  ApiResult<LeaseRecord> create(const LeaseRecord& record) override {
    return exchange(
        Client::createCall(Lease::kind(), name_space_, bodyOf(record, name_space_, name_), {}));
  }
  ApiResult<LeaseRecord> update(const LeaseRecord& record) override {
    return exchange(Client::updateCall(Lease::kind(), name_space_, name_,
                                       bodyOf(record, name_space_, name_), {}));
  }

 private:
  ApiResult<LeaseRecord> exchange(Call call) {
    call.timeout = timeout_;
    call.retry = false;  // the next attempt is soon enough, and knows more
    ApiResult<std::string> body = client_.perform(std::move(call));
    if (!body) return apiFailure(std::move(body).error());
    Result<std::shared_ptr<const Lease>> lease = decodeObject<Lease>(*std::move(body));
    if (lease) return recordOf(**lease);
    ApiError error;
    error.reason = ApiError::kMalformed;
    error.message = lease.error().message();
    return apiFailure(std::move(error));
  }

  Client& client_;
  std::string name_space_;
  std::string name_;
  Nanos timeout_;
};

}  // namespace

std::unique_ptr<LeaseStorage> makeLeaseStorage(Client& client, std::string name_space,
                                               std::string name, Nanos timeout) {
  return std::make_unique<LeaseClient>(client, std::move(name_space), std::move(name), timeout);
}

LeaderRules::LeaderRules(LeaseStorage& storage, const Clock& clock, LeaderOptions options)
    : storage_(storage), clock_(clock), options_(std::move(options)) {}

Result<void> LeaderRules::check(const LeaderOptions& options) {
  if (options.identity.empty()) return failure("leader election: the identity is empty");
  if (options.lease < seconds(1)) return failure("leader election: lease under a second");
  if (options.lease <= options.renew_deadline) {
    return failure("leader election: the lease must be longer than the renew deadline");
  }
  if (options.renew_deadline * 10 <= options.retry * 12) {
    return failure("leader election: the renew deadline must exceed 1.2 retry periods");
  }
  return {};
}

void LeaderRules::observe(const LeaseRecord& record) {
  if (record.resource_version == observed_.resource_version) return;
  observed_ = record;
  observed_at_ = clock_.monotonic();
}

LeaseRecord LeaderRules::ours() const {
  LeaseRecord record;
  record.holder = options_.identity;
  record.duration_seconds =
      static_cast<std::int32_t>(std::chrono::ceil<seconds>(options_.lease).count());
  record.renewed = clock_.wall();
  record.acquired = clock_.wall();
  record.resource_version = observed_.resource_version;
  if (observed_.holder == options_.identity) {
    // Whoever wrote a time that is too far away to be read, it is not to be written back.
    if (!saturated(observed_.acquired)) record.acquired = observed_.acquired;
    record.transitions = observed_.transitions;
  } else {
    record.transitions = observed_.resource_version.empty() ? 0 : observed_.transitions;
    if (!observed_.resource_version.empty() && record.transitions < INT32_MAX) ++record.transitions;
  }
  return record;
}

bool LeaderRules::tryOnce() {
  // The leader writes over what it wrote last, which fails if anybody has come between.
  if (held_ && observed_.holder == options_.identity) {
    if (const ApiResult<LeaseRecord> renewed = storage_.update(ours())) {
      observe(*renewed);
      return true;
    }
  }
  const ApiResult<LeaseRecord> current = storage_.read();
  if (!current && !current.error().notFound()) {
    trouble_ = current.error().describe();
    return false;
  }
  if (!current) {
    observed_ = {};
    const ApiResult<LeaseRecord> created = storage_.create(ours());
    if (!created) {
      trouble_ = created.error().describe();
      return false;
    }
    observe(*created);
    return true;
  }
  observe(*current);
  const bool mine = observed_.holder == options_.identity;
  const bool running =
      clock_.monotonic() < observed_at_ + seconds(std::max(1, observed_.duration_seconds));
  if (!observed_.holder.empty() && !mine && running) {
    trouble_.clear();  // held by another: as it should be
    return false;
  }
  const ApiResult<LeaseRecord> updated = storage_.update(ours());
  if (!updated) {
    trouble_ = updated.error().describe();
    return false;
  }
  observe(*updated);
  return true;
}

Nanos LeaderRules::attempt(double chance) {
  // Counted from before the request: that is when the others may have seen it.
  const MonotonicTime began = clock_.monotonic();
  if (tryOnce()) {
    held_ = true;
    renewed_at_ = began;
    trouble_.clear();
    return options_.retry;
  }
  if (observed_.holder != options_.identity) held_ = false;
  if (held_) return options_.retry;
  return Nanos(static_cast<std::int64_t>(static_cast<double>(options_.retry.count()) *
                                         (1 + chance * kJitter)));
}

std::optional<MonotonicTime> LeaderRules::renewBy() const {
  if (!held_) return std::nullopt;
  return renewed_at_ + options_.renew_deadline;
}

bool LeaderRules::leads() const {
  return held_ && clock_.monotonic() < *renewBy();
}

void LeaderRules::release() {
  if (!held_) return;
  LeaseRecord record = observed_;
  record.holder.clear();
  record.duration_seconds = 1;
  record.renewed = clock_.wall();
  record.acquired = clock_.wall();
  // If it fails, the others wait for the lease to run out.
  [[maybe_unused]] const auto released = storage_.update(record);
  held_ = false;
}

LeaderElector::LeaderElector(Client& client, LeaderOptions options, LeaderCallbacks callbacks)
    : client_(client),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      storage_(makeLeaseStorage(client, options_.name_space, options_.name,
                                std::max<Nanos>(seconds(1), options_.renew_deadline / 2))),
      rules_(*storage_, client.clock(), options_) {}

LeaderElector::~LeaderElector() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

Result<void> LeaderElector::start() {
  if (Result<void> good = LeaderRules::check(options_); !good) return good;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return {};
}

void LeaderElector::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    release_ = true;
  }
  thread_.request_stop();
  thread_.join();
}

bool LeaderElector::leads() const {
  const MutexLock lock(mutex_);
  return leads_until_ && client_.clock().monotonic() < *leads_until_;
}

Nanos LeaderElector::sinceLastTry() const {
  const MutexLock lock(mutex_);
  return last_try_ ? client_.clock().monotonic() - *last_try_ : Nanos(0);
}

void LeaderElector::setLeads(std::optional<MonotonicTime> until) {
  const MutexLock lock(mutex_);
  leads_until_ = until;
  if (options_.metrics != nullptr) options_.metrics->leading(options_.name, until.has_value());
}

void LeaderElector::run(const std::stop_token& stop) {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> chance(0, 1);
  std::string leader;
  std::string trouble;
  bool led = false;
  setLeads(std::nullopt);
  while (!stop.stop_requested()) {
    Nanos delay = rules_.attempt(chance(random));
    {
      const MutexLock lock(mutex_);
      last_try_ = client_.clock().monotonic();
    }
    if (rules_.holder() != leader) {
      leader = rules_.holder();
      if (callbacks_.on_new_leader) callbacks_.on_new_leader(leader);
    }
    if (rules_.trouble() != trouble) {
      trouble = rules_.trouble();
      if (callbacks_.on_trouble && !trouble.empty()) callbacks_.on_trouble(trouble);
    }
    if (rules_.leads()) {
      setLeads(rules_.renewBy());
      if (!std::exchange(led, true) && callbacks_.on_started) callbacks_.on_started();
    } else if (led) {
      setLeads(std::nullopt);
      if (callbacks_.on_lost) callbacks_.on_lost();
      return;
    }
    if (const std::optional<MonotonicTime> by = rules_.renewBy()) {
      delay = std::min(delay, std::max(Nanos(0), *by - client_.clock().monotonic()));
    }
    MutexLock lock(mutex_);
    woken_.wait_for(lock.native(), stop, delay, [] { return false; });
  }
  setLeads(std::nullopt);
  bool release = false;
  {
    const MutexLock lock(mutex_);
    release = release_;
  }
  if (release) rules_.release();
}

}  // namespace mbcas::kube
