#include "mbcas/agent/metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace mbcas::agent {
namespace {

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(out_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  void value(double number, std::string_view labels = {}) {
    fmt::format_to(std::back_inserter(out_), "{}{} {}\n", name_, labels, number);
  }
  void metric(std::string_view name, std::string_view type, std::string_view help, double number) {
    family(name, type, help);
    value(number);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string_view name_;
  std::string out_;
};

double cores(Millicores cpu) {
  return static_cast<double>(cpu.count()) / 1000;
}

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

}  // namespace

std::string metricsText(const View& view, const AgentCounters& counters) {
  Text text;
  text.metric(
      "mbcas_node_capacity_cores", "gauge",
      "All CPUs, less interrupts and stolen time; profile classic: what managed pods may use",
      cores(view.node.capacity));
  text.metric("mbcas_node_demand_cores", "gauge",
              "What managed pods use, or would use if nothing held them back; median of 30 s",
              cores(view.node.demand));
  text.metric("mbcas_node_unmanaged_use_cores", "gauge", "CPU used by everything else on the node",
              cores(view.unmanaged_use));
  text.metric("mbcas_node_scarce", "gauge",
              "1 while some managed pod could use more than its award", view.node.scarce ? 1 : 0);
  if (view.node.price) {
    text.metric("mbcas_node_price", "gauge",
                "Price of CPU on the node, 0 while every managed pod has what it can use",
                *view.node.price);
  }

  // Names of namespaces and pods need no escaping.
  const auto perPod = [&](std::string_view name, std::string_view help, auto value) {
    text.family(name, "gauge", help);
    for (const PodView& pod : view.pods) {
      if (!pod.left_alone.empty()) continue;
      text.value(value(pod),
                 fmt::format(R"({{namespace="{}",pod="{}"}})", pod.name_space, pod.name));
    }
  };
  perPod("mbcas_pod_usage_cores", "CPU used", [](const PodView& pod) { return cores(pod.usage); });
  perPod("mbcas_pod_blocked_cores", "Work that limits held back, in cores",
         [](const PodView& pod) { return cores(pod.blocked); });
  perPod("mbcas_pod_limit_cores", "CPU limit in force, as the kernel says",
         [](const PodView& pod) { return cores(pod.limit); });
  perPod("mbcas_pod_desired_limit_cores", "CPU limit that the agent publishes",
         [](const PodView& pod) { return cores(pod.decision.desired); });

  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t count) {
    text.metric(name, "counter", help, number(count));
  };
  counter("mbcas_agent_ticks_total", "Samples taken", view.sense.ticks);
  counter("mbcas_agent_late_ticks_total", "Samples more than half an interval late",
          view.sense.late_ticks);
  counter("mbcas_agent_reads_total", "Readings of kernel files", view.sense.reads);
  counter("mbcas_agent_read_failures_total", "Readings that failed", view.sense.failures);
  text.family("mbcas_agent_writes_total", "counter",
              "PodAllocations sent, by result: written, refused, failed or gone");
  text.value(number(counters.written), R"({result="written"})");
  text.value(number(counters.refused), R"({result="refused"})");
  text.value(number(counters.failed), R"({result="failed"})");
  text.value(number(counters.gone), R"({result="gone"})");
  text.metric("mbcas_agent_writes_waiting", "gauge", "Decisions that are not written yet",
              number(counters.waiting));
  text.metric("mbcas_agent_blind", "gauge", "1 while the agent is blind", counters.blind ? 1 : 0);
  counter("mbcas_agent_lease_renewals_total", "Renewals of the agent's Lease", counters.renewed);
  return text.take();
}

}  // namespace mbcas::agent
