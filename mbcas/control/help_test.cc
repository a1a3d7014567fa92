#include "mbcas/control/help.h"

#include <gtest/gtest.h>

namespace mbcas::control {
namespace {

using namespace literals;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Phase = Help::Phase;

// A pod that is seen once a second, and that the market would give more.
class Course {
 public:
  struct Seen {
    Millicores use = 500_m;
    bool pinned = true;
    std::optional<double> contention{};
  };

  Help help{};
  bool deprived = true;
  bool arrives = true;
  int probes = 0;

  void see(int count, const Seen& seen) {
    for (int second = 0; second < count; ++second) {
      now_ += seconds(1);
      help.add({.at = now_, .use = seen.use, .pinned = seen.pinned, .contention = seen.contention});
      if (help.mayProbe()) {
        help.probe();
        ++probes;
      }
      help.follow(deprived, arrives);
    }
  }
  // Seconds until the phase, of at most `most`.
  int until(Phase phase, int most, const Seen& seen) {
    for (int second = 1; second <= most; ++second) {
      see(1, seen);
      if (help.phase() == phase) return second;
    }
    return most + 1;
  }
  void startProbe() { ASSERT_LE(until(Phase::kProbe, 60, {}), 60); }

 private:
  MonotonicTime now_{seconds(1000)};
};

TEST(Help, BeginsWhereTwoThirdsOfTheSamplesShowThePodPinned) {
  Course course;
  course.see(10, {.pinned = false});
  course.see(19, {});
  EXPECT_EQ(course.help.phase(), Phase::kNone) << "19 of 29";
  course.see(1, {});
  EXPECT_EQ(course.help.phase(), Phase::kProbe) << "20 of 30";

  Course rarely;
  for (int i = 0; i < 100; ++i) {
    rarely.see(19, {});
    rarely.see(11, {.pinned = false});
  }
  EXPECT_EQ(rarely.probes, 0) << "19 of any 30";
}

TEST(Help, TheTimeBeforeAPodWasSeenIsNoEvidence) {
  Course course;
  course.see(19, {});
  EXPECT_EQ(course.help.phase(), Phase::kNone);
  course.see(1, {});
  EXPECT_EQ(course.help.phase(), Phase::kProbe);
}

TEST(Help, ATrialLastsHalfAMinute) {
  Course course;
  course.startProbe();
  EXPECT_EQ(course.until(Phase::kHeld, 100, {.use = 600_m}), 30);
  Course useless;
  useless.startProbe();
  EXPECT_EQ(useless.until(Phase::kNone, 100, {}), 30);
}

TEST(Help, HelpedIsWhatUsesATenthMore) {
  for (const Millicores use : {500_m, 540_m, 549_m}) {
    Course course;
    course.startProbe();
    course.see(30, {.use = use});
    EXPECT_EQ(course.help.phase(), Phase::kNone) << use.count();
  }
  Course course;
  course.startProbe();
  course.see(15, {});  // until the limits are in force
  course.see(15, {.use = 550_m});
  EXPECT_EQ(course.help.phase(), Phase::kHeld);
}

TEST(Help, ARiseNoLargerThanTheUsualOnesProvesNothing) {
  const auto phaseAfter = [](Millicores earlier, Millicores then) {
    Course course;
    course.see(30, {.use = earlier, .pinned = false});
    course.see(19, {.pinned = false});
    course.see(20, {});
    EXPECT_EQ(course.help.phase(), Phase::kProbe);
    course.see(30, {.use = then});
    return course.help.phase();
  };
  EXPECT_EQ(phaseAfter(500_m, 580_m), Phase::kHeld);
  EXPECT_EQ(phaseAfter(300_m, 580_m), Phase::kNone) << "it rose as much before the trial";
}

TEST(Help, HelpedIsWhatIsPinnedNoLonger) {
  Course course;
  course.startProbe();
  course.see(20, {});
  course.see(10, {.pinned = false});
  EXPECT_EQ(course.help.phase(), Phase::kHeld);

  Course mostly;
  mostly.startProbe();
  mostly.see(21, {});
  mostly.see(9, {.pinned = false});
  EXPECT_EQ(mostly.help.phase(), Phase::kNone);
}

TEST(Help, HelpedIsWhatWaitsATenthLessForEachSecondOfCpu) {
  const auto phaseAfter = [](std::optional<double> before, std::optional<double> then) {
    Course course;
    EXPECT_LE(course.until(Phase::kProbe, 60, {.contention = before}), 60);
    course.see(30, {.contention = then});
    return course.help.phase();
  };
  EXPECT_EQ(phaseAfter(0.5, 0.44), Phase::kHeld);
  EXPECT_EQ(phaseAfter(0.5, 0.46), Phase::kNone);
  EXPECT_EQ(phaseAfter(std::nullopt, 0.1), Phase::kNone) << "nothing to compare it with";
  EXPECT_EQ(phaseAfter(0.5, std::nullopt), Phase::kNone);
}

TEST(Help, AfterAFailureTheNextTrialWaitsTwiceAsLongUpToAnHour) {
  Course course;
  course.startProbe();
  for (const Nanos back_off : {Nanos(minutes(5)), Nanos(minutes(10)), Nanos(minutes(20)),
                               Nanos(minutes(40)), Nanos(hours(1)), Nanos(hours(1))}) {
    course.see(30, {});
    ASSERT_EQ(course.help.phase(), Phase::kNone);
    const auto waits = std::chrono::duration_cast<seconds>(back_off).count();
    ASSERT_EQ(course.until(Phase::kProbe, 5000, {}), waits);
  }
}

TEST(Help, OtherParticipantsAreReasonEnoughToTryAgain) {
  Course course;
  course.startProbe();
  course.see(30, {});
  ASSERT_EQ(course.help.phase(), Phase::kNone);
  course.help.forgetBackOff();
  EXPECT_EQ(course.until(Phase::kProbe, 1000, {}), 20) << "evidence of the time since";
  course.see(30, {});
  EXPECT_EQ(course.until(Phase::kProbe, 1000, {}), 300) << "and the back-off starts over";
}

TEST(Help, AHoldDoesNotDependOnTheEvidence) {
  Course course;
  course.startProbe();
  course.see(30, {.use = 600_m, .pinned = false});
  ASSERT_EQ(course.help.phase(), Phase::kHeld);
  course.see(3600, {.use = 600_m, .pinned = false});
  EXPECT_EQ(course.help.phase(), Phase::kHeld);
  EXPECT_EQ(course.probes, 1);
}

TEST(Help, EndsWhenThePodIsNotDeprivedWithoutIt) {
  Course course;
  course.startProbe();
  course.see(30, {.use = 600_m, .pinned = false});
  ASSERT_EQ(course.help.phase(), Phase::kHeld);
  course.deprived = false;
  course.see(1, {.use = 600_m, .pinned = false});
  EXPECT_EQ(course.help.phase(), Phase::kNone);
  course.deprived = true;
  EXPECT_EQ(course.until(Phase::kProbe, 1000, {}), 20) << "that was no failure: no back-off";
}

TEST(Help, EndsWithABackOffWhenItDoesNotArrive) {
  for (const int lasted : {10, 100}) {
    Course course;
    course.startProbe();
    course.see(lasted, {.use = 600_m});
    ASSERT_NE(course.help.phase(), Phase::kNone);
    course.arrives = false;
    course.see(1, {.use = 600_m});
    EXPECT_EQ(course.help.phase(), Phase::kNone);
    course.arrives = true;
    EXPECT_EQ(course.until(Phase::kProbe, 1000, {}), 300);
  }
}

TEST(Help, ClaimsAllOnTrialAndThenItsUseWithInsurance) {
  Course course;
  course.see(10, {});
  EXPECT_FALSE(course.help.claim(4000_m, 2));
  course.startProbe();
  EXPECT_EQ(course.help.claim(4000_m, 2), 4000_m);
  course.see(60, {.use = 700_m});
  ASSERT_EQ(course.help.phase(), Phase::kHeld);
  EXPECT_EQ(course.help.use(), 700_m);
  EXPECT_EQ(course.help.claim(4000_m, 2), 1400_m);
  EXPECT_EQ(course.help.claim(4000_m, 1), 700_m);
  EXPECT_EQ(course.help.claim(1000_m, 2), 1000_m) << "no more than there is";
}

}  // namespace
}  // namespace mbcas::control
