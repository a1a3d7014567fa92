// The way back: what a pod declared, and how to give it back. Used by the controller and by
// `mbcas restore`.
#pragma once

#include <string>
#include <vector>

#include "mbcas/kube/types.h"
#include "mbcas/podallocation/original_resources.h"
#include "mbcas/resize/resize.h"

namespace mbcas::controller {

// Whether the pod carries the annotation, whoever wrote it.
bool hasOriginal(const kube::Pod& pod);

// Makes the spec say `original` again, exactly: requests and limits of the containers that differ.
// Nothing to do: no containers.
resize::Request restoreRequest(const kube::Pod& pod,
                               const std::vector<podallocation::OriginalCpu>& original);
// The same, but only raises limits that are below the original.
resize::Request giveBackRequest(const kube::Pod& pod,
                                const std::vector<podallocation::OriginalCpu>& original);

// Merge patch that removes the annotation, good only for the version of the pod that was read.
std::string forgetOriginal(const kube::Pod& pod);

}  // namespace mbcas::controller
