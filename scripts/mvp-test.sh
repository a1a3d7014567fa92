#!/usr/bin/env bash
# Usage: scripts/mvp-test.sh [--keep | --cleanup]
#
# From nothing to limits that move: builds the images, starts a cluster of its own (kind where there is
# Docker and kind, else the project's own node, which needs root), starts sample workloads with limits
# that are too low, installs MBCAS, waits until it has raised them, shows before and after, uninstalls,
# and checks that every pod has what it declared.
#   --keep      leave the cluster, MBCAS and the samples running, and say how to look at them
#   --cleanup   only remove what an earlier run with --keep has left
set -euo pipefail
cd "$(dirname "$0")/.."

name=mbcas-mvp
keep=false cleanup=false
case "${1:-}" in
"") ;;
--keep) keep=true ;;
--cleanup) cleanup=true ;;
*)
  sed -n 's/^# \{0,1\}//; 2,9p' "$0"
  exit 2
  ;;
esac

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
began=$SECONDS
step() { printf '%s%4d s  %s%s\n' "$bold" $((SECONDS - began)) "$*" "$plain"; }
note() { printf '        %s\n' "$*"; }
fail() {
  printf '%sFAILED: %s%s\n' "$bold" "$1" "$plain" >&2
  shift
  local line
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

if command -v kind >/dev/null && docker info >/dev/null 2>&1; then
  where=kind
else
  where=own
fi
remove_cluster() {
  if [ $where = kind ]; then
    kind delete cluster --name $name
  else
    tools/cluster/cluster down --name $name
  fi
}
if $cleanup; then
  remove_cluster
  exit
fi

# ---- what is known to go wrong, told in words

explain_failure() { # WHAT
  local pods reasons logs
  pods=$(kubectl -n mbcas-system get pods 2>&1 || true)
  reasons=$(kubectl -n mbcas-system get pods -o \
    jsonpath='{range .items[*]}{.status.containerStatuses[*].state.waiting.reason}{" "}{end}' 2>/dev/null || true)
  logs=$(kubectl -n mbcas-system logs --tail=20 --prefix -l app.kubernetes.io/name=mbcas 2>&1 || true)
  local why=("$pods" "$logs")
  case "$reasons" in
  *ErrImageNeverPull* | *ImagePullBackOff* | *ErrImagePull*)
    why=("The images are not on the node: make images, then load each archive of build/images." "$pods") ;;
  esac
  case "$logs" in
  *"pods/resize"*"needs Kubernetes"*)
    why=("This Kubernetes cannot resize pods in place: 1.33 or later is needed." "$logs") ;;
  *"not permitted"* | *orbidden*)
    why=("An account lacks a permission: kubectl apply -k config once more, and look for changed roles." "$logs") ;;
  *cgroup*"annot"* | *"no cgroup"*)
    why=("The agent cannot read cgroups: is /sys/fs/cgroup mounted on the node, and readable in the pod?" "$logs") ;;
  esac
  fail "$1" "${why[@]}"
}

explain_unchanged() { # POD
  local qos phase reason
  qos=$(kubectl -n test-mbcas get pod "$1" -o jsonpath='{.status.qosClass}')
  phase=$(allocation "$1" '{.status.phase}')
  reason=$(allocation "$1" '{.status.bounds.reason}; {.status.reason}')
  if [ "$qos" = Guaranteed ]; then
    fail "$1 was not changed" "It is Guaranteed (requests equal limits): such pods are left alone unless annotated" \
      "mbcas.io/manage-guaranteed=true."
  fi
  if [ -z "$phase" ]; then explain_failure "$1 has no PodAllocation: the agent does not see it"; fi
  fail "$1 was not changed" "Its PodAllocation is $phase: $reason"
}

# ---- questions to the cluster

allocation() { # POD JSONPATH
  local uid
  uid=$(kubectl -n test-mbcas get pod "$1" -o jsonpath='{.metadata.uid}')
  kubectl -n test-mbcas get podallocation "$uid" -o jsonpath="$2" 2>/dev/null || true
}
limit() { # POD: as the kubelet has actuated it, in millicores
  local value
  value=$(kubectl -n test-mbcas get pod "$1" -o \
    jsonpath='{.status.containerStatuses[0].resources.limits.cpu}')
  case $value in *m) echo "${value%m}" ;; "") echo 0 ;; *) echo $((value * 1000)) ;; esac
}
web_pod() { kubectl -n test-mbcas get pods -l app=web -o jsonpath='{.items[0].metadata.name}'; }
server_limit() {
  kubectl -n test-mbcas get pods -l app=web -o \
    jsonpath='{.items[0].status.containerStatuses[?(@.name=="server")].resources.limits.cpu}'
}
latency() { kubectl -n test-mbcas logs deploy/web -c load --tail=1; }
wait_until() { # SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 1
  done
}

# ---- cluster

step "building the images"
make -s images >build/mvp-images.log 2>&1 || fail "the images do not build" "$(tail -5 build/mvp-images.log)"

step "starting a cluster ($where)"
end() {
  local code=$?
  if ! $keep; then remove_cluster >/dev/null 2>&1 || true; fi
  exit $code
}
trap end EXIT
images=(build/images/{mbcas-agent,mbcas-controller,workload}.tar)
if [ $where = kind ]; then
  kind get clusters 2>/dev/null | grep -qx $name ||
    kind create cluster --name $name --config scripts/kind-config.yaml --wait 120s
  kubeconfig=$PWD/build/mvp-kubeconfig
  kind get kubeconfig --name $name >"$kubeconfig"
  kubectl=kubectl
  for archive in "${images[@]}"; do kind load image-archive --name $name "$archive"; done
else
  lines=$(tools/cluster/cluster up --name $name) ||
    fail "no node can run here" "With Docker and kind installed this script uses those instead."
  kubeconfig=$(sed -n 's/^export KUBECONFIG=//p' <<<"$lines")
  kubectl=$(sed -n 's/^# kubectl of the same version: //p' <<<"$lines")
  for archive in "${images[@]:0:2}"; do
    tools/cluster/cluster load-image --name $name "$archive" >/dev/null
  done
fi
export KUBECONFIG=$kubeconfig
kubectl() { command "$kubectl" "$@"; }
resources=$(kubectl get --raw /api/v1)
case $resources in *'"pods/resize"'*) ;; *)
  fail "this cluster does not serve pods/resize" \
    "Kubernetes 1.33 or later is needed, or 1.32 with the feature gate InPlacePodVerticalScaling." ;;
esac

# ---- before

step "starting samples with the limits that people guessed"
kubectl apply -f config/samples/namespace.yaml -f config/samples/cpu-stress.yaml -f config/samples/web.yaml >/dev/null
kubectl -n test-mbcas wait --for=condition=Ready pod --all --timeout=120s >/dev/null ||
  fail "the samples do not start" "$(kubectl -n test-mbcas get pods)"
sleep 16
before=$(latency)
note "the service: $before"

step "installing MBCAS"
kubectl apply -k overlays/dev >/dev/null || fail "the manifests were refused" "See above."
for what in deploy/mbcas-controller ds/mbcas-agent; do
  kubectl -n mbcas-system rollout status $what --timeout=120s >/dev/null || explain_failure "$what does not become ready"
done

# ---- after

step "waiting for limits to move"
for pod in cpu-stress-1 cpu-stress-2; do
  raised() { [ "$(limit $pod)" -gt 200 ]; }
  wait_until 120 raised || explain_unchanged $pod
  note "$pod: 200m -> $(limit $pod)m"
done
served() { [ "$(server_limit)" != 250m ]; }
wait_until 120 served || explain_unchanged "$(web_pod)"
sleep 16
after=$(latency)
note "web: 250m -> $(server_limit)"
note "the service before: $before"
note "the service after:  $after"
restarts=$(kubectl -n test-mbcas get pods -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}')
case $restarts in *[1-9]*) fail "a container was restarted" "$(kubectl -n test-mbcas get pods)" ;; esac
p99() { sed -E 's/.*p99 ([0-9]+)\..*/\1/' <<<"$1"; }
[ "$(p99 "$after")" -lt "$(p99 "$before")" ] ||
  fail "the service is no faster" "before: $before" "after:  $after" "Is the machine busy with other work?"
echo
kubectl get podallocations -A
echo
kubectl -n test-mbcas get events --field-selector reason=CPULimitRaised | tail -5
echo

if $keep; then
  trap - EXIT
  step "left running. To look at it:"
  note "export KUBECONFIG=$kubeconfig"
  note "kubectl get podallocations -A -o wide"
  note "kubectl -n test-mbcas logs deploy/web -c load -f"
  note "kubectl apply -k config/samples      # more workloads: hogs, priorities, a quota"
  note "scripts/mvp-test.sh --cleanup        # removes all of it"
  exit
fi

step "uninstalling"
kubectl -n mbcas-system exec deploy/mbcas-controller -- mbcas restore --all >/dev/null ||
  fail "mbcas restore --all" "See above."
for pod in cpu-stress-1 cpu-stress-2; do
  restored() { [ "$(limit $pod)" = 200 ]; }
  wait_until 60 restored || fail "$pod has $(limit $pod)m, not the 200m that it declares"
done
kubectl delete -k overlays/dev --timeout=120s >/dev/null
left=$(kubectl get pods -A -o jsonpath='{.items[*].metadata.annotations.mbcas\.io/original-resources}')
[ -z "$left" ] || fail "annotations are left" "$left"
step "passed: limits rose, the service became faster, no pod restarted, nothing is left"
