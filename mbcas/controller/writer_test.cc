#include "mbcas/controller/writer.h"

#include <gtest/gtest.h>

namespace mbcas::controller {
namespace {

// As Kubernetes 1.35 writes it.
constexpr const char* kPod = R"({"metadata":{"name":"p","managedFields":[
 {"manager":"kubectl-create","operation":"Update","fieldsV1":{"f:spec":{"f:containers":{
   "k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},
     "f:requests":{".":{},"f:cpu":{}}}},
   "k:{\"name\":\"side\"}":{".":{},"f:resources":{"f:limits":{".":{},"f:cpu":{}}}}}}}},
 {"fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:resources":{"f:limits":{
   "f:cpu":{}}}}},"f:initContainers":{"k:{\"name\":\"proxy\"}":{"f:resources":{"f:limits":{"f:cpu":{}}}}}}},
   "manager":"mbcas-controller","operation":"Update","subresource":"resize"}]}})";

TEST(Writer, TellsWhoseLimitsTheyAre) {
  EXPECT_EQ(limitsWrittenBy("mbcas-controller", kPod), (std::vector<std::string>{"main", "proxy"}));
  EXPECT_EQ(limitsWrittenBy("kubectl-create", kPod), (std::vector<std::string>{"side"}));
  EXPECT_EQ(limitsWrittenBy("nobody", kPod), std::vector<std::string>{});
}

TEST(Writer, OddDocuments) {
  EXPECT_EQ(limitsWrittenBy("x", "{}"), std::vector<std::string>{});
  EXPECT_EQ(limitsWrittenBy("x", R"({"metadata":{"managedFields":null}})"),
            std::vector<std::string>{});
  EXPECT_FALSE(limitsWrittenBy("x", "[1"));
  EXPECT_FALSE(limitsWrittenBy("x", R"({"metadata":{"managedFields":[7]}})"));
  EXPECT_EQ(limitsWrittenBy("x", R"({"metadata":{"managedFields":[{"manager":"x","fieldsV1":
    {"f:spec":{"f:containers":{"k:{\"name\":\"":{},"k:{}":{},".":{}}}}}]}})"),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace mbcas::controller
