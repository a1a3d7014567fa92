// The credential that goes with each request, kept fresh: a service account's token is rotated in
// its file, an exec plugin's expires. What is secret stays in here and in the request's header; no
// error text holds it.
#pragma once

#include <memory>
#include <string>

#include "mbcas/base/clock.h"
#include "mbcas/base/result.h"
#include "mbcas/kube/config.h"

namespace mbcas::kube {

struct Credential {
  std::string authorization;  // the header's value ("Bearer ..."), empty for none
  std::string client_cert;    // PEM, from an exec plugin; else empty
  std::string client_key;
};

// One thread owns it at a time.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Whether get() would answer at once. If not, it may block for as long as a plugin takes.
  virtual bool ready() const { return true; }
  virtual Result<Credential> get() = 0;
  // The server refused the credential (401). Returns whether getting it anew may help.
  virtual bool refused() { return false; }
};

// Chooses by what the configuration holds. `clock` must outlive the source.
std::unique_ptr<CredentialSource> makeCredentialSource(const ClientConfig& config,
                                                       const Clock& clock);

}  // namespace mbcas::kube
