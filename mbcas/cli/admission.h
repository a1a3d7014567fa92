// The admission policies of MBCAS: as this version installs them, and as a cluster has them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mbcas/base/result.h"

namespace mbcas::cli {

// What of a ValidatingAdmissionPolicy, or of its binding, decides. Two that are equal refuse the
// same; what a server fills in by itself is not in here.
struct AdmissionObject {
  std::string name;
  std::map<std::string, std::vector<std::string>> fields;  // "validations": each, in order

  friend bool operator==(const AdmissionObject&, const AdmissionObject&) = default;
};
// The fields in which they differ.
std::vector<std::string> differences(const AdmissionObject& some, const AdmissionObject& other);

struct AdmissionObjects {
  std::vector<AdmissionObject> policies;
  std::vector<AdmissionObject> bindings;
};
// Those of config/policy, for MBCAS in that namespace.
AdmissionObjects installedAdmission(std::string_view system_namespace);

// The items of a list of policies, or of bindings, that a server answered with.
Result<std::vector<AdmissionObject>> parseAdmissionList(std::string list);

}  // namespace mbcas::cli
