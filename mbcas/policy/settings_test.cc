#include "mbcas/policy/settings.h"

#include <gtest/gtest.h>

namespace mbcas::policy {
namespace {

using namespace std::chrono_literals;

TEST(Settings, Defaults) {
  const auto parsed = parseSettings({});
  ASSERT_TRUE(parsed);
  const Settings& settings = parsed->settings;
  EXPECT_EQ(settings, Settings());
  EXPECT_EQ(settings.mode, Mode::kFull);
  EXPECT_EQ(settings.law.guards.cooldown, 30s);
  EXPECT_EQ(settings.law.guards.max_step, 1.5);
  EXPECT_EQ(settings.law.guards.raise_max_step, 8);
  EXPECT_EQ(settings.law.min_cpu, Millicores(100));
  EXPECT_EQ(settings.silence, 60s);
  EXPECT_EQ(settings.excluded_namespaces.size(), 4u);
}

TEST(Settings, RoundTrip) {
  const auto classic = parseSettings({{"profile", "classic"},
                                      {"mode", "raise-only"},
                                      {"cooldown", "45s"},
                                      {"min-cpu", "0.05"},
                                      {"exclude-namespaces", "kube-system, infra"},
                                      {"fairness", "workload"},
                                      {"paused", "true"},
                                      {"hysteresis", "0.2"},
                                      {"insurance", "3"},
                                      {"warmup", "3"},
                                      {"sample-interval", "500ms"}});
  ASSERT_TRUE(classic) << classic.error().message();
  EXPECT_EQ(classic->settings.law.guards.cooldown, 45s);
  EXPECT_EQ(classic->settings.law.min_cpu, Millicores(50));
  EXPECT_EQ(classic->settings.law.insurance, 3);
  EXPECT_EQ(classic->settings.excluded_namespaces,
            (std::vector<std::string>{"kube-system", "infra"}));
  EXPECT_EQ(classic->settings.estimator, "classic");
  EXPECT_TRUE(classic->settings.law.strict_capacity) << "the profile's default";
  const auto again = parseSettings(settingsData(classic->settings));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->settings, classic->settings);
  EXPECT_TRUE(again->unknown.empty());
}

TEST(Settings, ProfileComesFirstWhateverTheOrder) {
  const auto parsed = parseSettings({{"bid-rule", "entitlement"}, {"profile", "classic"}});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->settings.law.bid_rule, control::BidRule::kEntitlement);
}

TEST(Settings, ErrorsNameTheKey) {
  const auto error = [](const SettingsData& data) {
    const auto parsed = parseSettings(data);
    return parsed ? "accepted" : parsed.error().message();
  };
  EXPECT_EQ(error({{"mode", "of"}}), "mode: \"of\" is none of off, recommend, raise-only, full");
  EXPECT_TRUE(error({{"cooldown", "soon"}}).starts_with("cooldown: not a duration"));
  EXPECT_TRUE(error({{"max-step", "0.5"}}).starts_with("max-step: "));
  EXPECT_TRUE(error({{"max-step", "nan"}}).starts_with("max-step: "));
  EXPECT_EQ(error({{"insurance", "0.5"}}), "insurance: 0.5 is not between 1 and 10");
  EXPECT_TRUE(error({{"insurance", "11"}}).starts_with("insurance: "));
  EXPECT_TRUE(error({{"min-cpu", "much"}}).starts_with("min-cpu: "));
  EXPECT_TRUE(error({{"silence", "5s"}}).starts_with("silence: "));
  EXPECT_TRUE(error({{"paused", "yes"}}).starts_with("paused: "));
  EXPECT_TRUE(error({{"ema-up", "2"}}).starts_with("ema-up: "));
  EXPECT_TRUE(error({{"estimator", "psychic"}}).starts_with("estimator: "));
}

TEST(Settings, UnknownKeysAreToldNotTaken) {
  const auto parsed = parseSettings({{"mdoe", "off"}});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->unknown, std::vector<std::string>{"mdoe"});
}

TEST(Duration, Forms) {
  EXPECT_EQ(parseDuration("1m30s"), Nanos(90s));
  EXPECT_EQ(parseDuration("500ms"), Nanos(500ms));
  EXPECT_EQ(parseDuration("1.5s"), Nanos(1500ms));
  EXPECT_EQ(parseDuration("0"), Nanos(0));
  EXPECT_EQ(parseDuration("24h"), Nanos(24h));
  for (const char* bad :
       {"", "s", "1", "-1s", "1x", "25h", "1s1", "1e9s", "nans", "inf", "9999999999999h"}) {
    EXPECT_FALSE(parseDuration(bad)) << bad;
  }
  EXPECT_EQ(formatDuration(90s), "90s");
  EXPECT_EQ(formatDuration(250ms), "250ms");
}

}  // namespace
}  // namespace mbcas::policy
