// `mbcas demo` on the model, as its users run it: what each of its acts has to show.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "test/support/command.h"
#include "test/support/golden.h"

namespace {

using mbcas::test::Outcome;
using mbcas::test::runCommand;
using nlohmann::json;

json acts(const std::string& cpus) {
  const Outcome outcome = runCommand({MBCAS_BINARY, "demo", "--model", "--cpus", cpus, "--seconds",
                                      "40", "--json", "--report", ""});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out).at("phases");
}

TEST(Demo, NoPodIsCutAndTheMachineIsUsed) {
  for (const char* cpus : {"1", "2", "8"}) {
    const json phases = acts(cpus);
    ASSERT_EQ(phases.size(), 3u);
    EXPECT_EQ(phases[0].at("seconds"), 10);
    EXPECT_EQ(phases[1].at("seconds"), 20);
    EXPECT_EQ(phases[2].at("seconds"), 10);
    for (const std::size_t act : {1u, 2u}) {
      const json& phase = phases[act];
      // What the hog gets by its kernel weight is used, too.
      const double used = phase.at("utilisation").get<double>() +
                          phase.at("hogUsedCores").get<double>() / std::stoi(cpus);
      EXPECT_GE(used + 1e-6, phases[0].at("utilisation")) << cpus << " CPUs";
      EXPECT_GE(phase.at("welfare"), phases[0].at("welfare")) << cpus << " CPUs";
      for (std::size_t pod = 0; pod < 4; ++pod) {
        EXPECT_GE(phase.at("pods")[pod].at("lowestLimitCores"),
                  phases[0].at("pods")[pod].at("lastLimitCores"))
            << phase.at("pods")[pod].at("name") << " on " << cpus << " CPUs";
      }
    }
  }
}

TEST(Demo, NextToAHogPodsKeepWhatTheyHave) {
  const json phases = acts("2");
  EXPECT_EQ(phases[1].at("hogUsedCores"), 0);
  EXPECT_GT(phases[2].at("hogUsedCores"), 0);
  EXPECT_LT(phases[2].at("hogUsedCores"), 0.05);
  EXPECT_GT(phases[2].at("utilisation"), 0.97);
  for (const json& pod : phases[2].at("pods")) {
    EXPECT_LT(pod.at("throttledMillisecondsPerSecond"), 10) << pod.at("name");
  }
  EXPECT_LT(phases[2].at("p99Milliseconds"), phases[0].at("p99Milliseconds"));
}

TEST(Demo, NamesForScripts) {
  const Outcome outcome = runCommand({MBCAS_BINARY, "demo", "--model", "--cpus", "2", "--seconds",
                                      "12", "-o", "name", "--report", ""});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "pod/steady\npod/bursty\npod/greedy\npod/service\n");
}

TEST(Demo, AReportOfAllActs) {
  const std::string report = ::testing::TempDir() + "mbcas-demo-test.html";
  const Outcome outcome = runCommand({MBCAS_BINARY, "demo", "--model", "--cpus", "2", "--seconds",
                                      "12", "--plain", "--report", report});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("static limits  the market  with a hog\n"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("machine used by the hog"), std::string::npos);
  const std::string page = mbcas::test::fileText(report);
  std::remove(report.c_str());
  for (const char* text : {"static limits", "the market", "with a hog", "hog</td>", "</html>"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

}  // namespace
