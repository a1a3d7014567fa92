#!/usr/bin/env bash
# Usage: scripts/mvp-test.sh [--remove] [--on kind|node] [--images DIR] [--node-image IMAGE]
#                            [--name NAME] [--dry-run]
#        scripts/mvp-test.sh --cleanup [--name NAME]
#
# From nothing to limits that move. The script builds the images, starts a cluster of its own, starts
# sample workloads whose limits are too low, installs MBCAS, waits until MBCAS has raised the limits,
# and shows the service's latency before and after. The cluster stays up; the last lines are the
# commands that show what MBCAS does, and the one that removes everything.
#   --remove      restore the limits, uninstall and remove the cluster at the end, also on failure
#   --cleanup     only do that, to the cluster that an earlier run left up
#   --on WHERE    kind (needs Docker) or node (the project's own node, needs root); by default kind
#                 where it is installed and Docker answers, else node
#   --images DIR  load the archives of DIR, which `make images` has written, and build nothing
#   --node-image IMAGE  kind: of the node, for another Kubernetes than scripts/kind-config.yaml has
#   --name NAME   of the cluster; mbcas-mvp by default
#   --dry-run     print every command instead of running it
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n 's/^# \{0,1\}//; 2,17p' "$0"
  exit 2
}

name=mbcas-mvp where='' image_dir='' node_image='' remove=false cleanup=false dry_run=false
while [ $# -gt 0 ]; do
  case "$1" in
  --remove) remove=true ;;
  --cleanup) cleanup=true ;;
  --dry-run) dry_run=true ;;
  --on | --images | --name | --node-image)
    [ $# -gt 1 ] || usage
    case "$1" in
    --on) where=$2 ;;
    --images) image_dir=$2 ;;
    --name) name=$2 ;;
    --node-image) node_image=$2 ;;
    esac
    shift
    ;;
  *) usage ;;
  esac
  shift
done
case "$where" in "" | kind | node) ;; *) usage ;; esac

# What an earlier run left up: where it runs, and how to reach it.
state=build/$name.state
kubeconfig='' kubectl=kubectl
if $cleanup && [ -f "$state" ]; then
  { read -r where && read -r kubeconfig && read -r kubectl; } <"$state"
fi
if [ -z "$where" ]; then
  where=node
  if command -v kind >/dev/null && docker info >/dev/null 2>&1; then where=kind; fi
fi

# ---- words and commands

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
exec 3>&1 # where a dry run prints commands, also those whose output the script would read
began=$SECONDS
step() { printf '%s%4d s  %s%s\n' "$bold" $((SECONDS - began)) "$*" "$plain"; }
note() { $dry_run || printf '        %s\n' "$*"; }
fail() {
  printf '%sFAILED: %s%s\n' "$bold" "$1" "$plain" >&2
  shift
  local line
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}
run() { # COMMAND...
  if $dry_run; then
    local word line=+
    for word in "$@"; do
      case $word in *[!A-Za-z0-9_./:=,-]*) word=${word@Q} ;; esac
      line+=" $word"
    done
    echo "$line" >&3
  else
    command "$@"
  fi
}
kind() { run kind "$@"; }
node() { run tools/cluster/cluster "$@"; }
kubectl() { KUBECONFIG=$kubeconfig run "$kubectl" "$@"; }
wait_until() { # SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@" || $dry_run; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 1
  done
}

# ---- known failures, with their causes

explain_failure() { # WHAT
  local pods reasons logs
  pods=$(kubectl -n mbcas-system get pods 2>&1 || true)
  reasons=$(kubectl -n mbcas-system get pods -o \
    jsonpath='{range .items[*]}{.status.containerStatuses[*].state.waiting.reason}{" "}{end}' 2>/dev/null || true)
  logs=$(kubectl -n mbcas-system logs --tail=20 --prefix -l app.kubernetes.io/part-of=mbcas 2>&1 || true)
  local why=("$pods" "$logs")
  case "$reasons" in
  *ErrImageNeverPull* | *ImagePullBackOff* | *ErrImagePull*)
    why=("The images are not on the node: make images, then load each archive of build/images." "$pods") ;;
  esac
  case "$logs" in
  *"pods/resize"*"needs Kubernetes"*)
    why=("This Kubernetes cannot resize pods in place: 1.33 or later is needed." "$logs") ;;
  *"not permitted"* | *orbidden*)
    why=("An account lacks a permission: run kubectl apply -k config again, and look for changed roles." "$logs") ;;
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
    fail "$1 was not changed" "It is Guaranteed (requests equal limits). MBCAS leaves such pods alone unless they have" \
      "the annotation mbcas.io/manage-guaranteed=true."
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
reports() { kubectl -n test-mbcas logs deploy/web -c load | sed -n '/ p99 /p'; } # one line every 5 s
p99() { sed -E 's/.*p99 ([0-9]+)\..*/\1/' <<<"$1"; }

# ---- steps

start_cluster() {
  local archive archives=("$image_dir"/{mbcas-agent,mbcas-controller,workload}.tar)
  if [ "$where" = kind ]; then
    kind get clusters 2>/dev/null | grep -qx "$name" ||
      kind create cluster --name "$name" --config scripts/kind-config.yaml \
        ${node_image:+--image "$node_image"} --wait 120s
    kubeconfig=$PWD/build/$name.kubeconfig
    kind export kubeconfig --name "$name" --kubeconfig "$kubeconfig"
    for archive in "${archives[@]}"; do kind load image-archive --name "$name" "$archive"; done
  else
    local lines
    lines=$(node up --name "$name") ||
      fail "no node can run here" "With Docker and kind installed this script uses those instead."
    kubeconfig=$(sed -n 's/^export KUBECONFIG=//p' <<<"$lines")
    $dry_run || kubectl=$(sed -n 's/^# kubectl of the same version: //p' <<<"$lines")
    for archive in "${archives[@]:0:2}"; do
      node load-image --name "$name" "$archive" >/dev/null
    done
  fi
  if $dry_run; then
    run export KUBECONFIG="${kubeconfig:-FILE}"
  else
    printf '%s\n' "$where" "$kubeconfig" "$kubectl" >"$state"
  fi
  local resources
  resources=$(kubectl get --raw /api/v1)
  case $resources in *'"pods/resize"'*) ;; *)
    $dry_run || fail "this cluster does not serve pods/resize" \
      "Kubernetes 1.33 or later is needed, or 1.32 with the feature gate InPlacePodVerticalScaling." ;;
  esac
}

# A pod of the controller that is not ending: `exec deploy/...` may choose one that an update has just
# replaced.
controller_pod() {
  kubectl -n mbcas-system get pods -l app.kubernetes.io/name=mbcas-controller \
    --field-selector=status.phase=Running -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}'
}
restore_all() {
  local pod
  pod=$(controller_pod | head -1)
  if $dry_run; then pod=POD; fi
  [ -n "$pod" ] && kubectl -n mbcas-system exec "$pod" -- mbcas restore --all
}

uninstall() {
  kubectl -n mbcas-system rollout status deploy/mbcas-controller --timeout=120s >/dev/null ||
    note "the controller is not ready; restoring all the same"
  # What it does it may do twice.
  restored_all() { said=$(restore_all 2>&1); }
  local said=''
  wait_until 60 restored_all || fail "mbcas restore --all" "$said"
  local pod left
  for pod in cpu-stress-1 cpu-stress-2; do
    restored() { [ "$(limit "$pod")" = 200 ]; }
    wait_until 120 restored || fail "$pod has $(limit $pod)m, not the 200m that it declares"
  done
  # What goes with its namespace may be gone before its turn comes.
  kubectl delete -k overlays/dev --ignore-not-found --timeout=180s >/dev/null || fail "the manifests could not be deleted" "See above."
  left=$(kubectl get pods -A -o jsonpath='{.items[*].metadata.annotations.mbcas\.io/original-resources}')
  [ -z "$left" ] || fail "annotations are left" "$left"
}

remove_cluster() {
  if [ "$where" = kind ]; then
    kind delete cluster --name "$name"
  else
    node down --name "$name"
  fi
  $dry_run || rm -f "$state" "build/$name.kubeconfig"
}

if $cleanup; then
  installed=''
  if [ -n "$kubeconfig" ] || $dry_run; then
    installed=$(kubectl -n mbcas-system get deploy/mbcas-controller -o name --request-timeout=10s 2>/dev/null || true)
  fi
  if [ -n "$installed" ] || $dry_run; then
    step "restoring limits and uninstalling"
    # The cluster goes in any case.
    (uninstall) || { remove_cluster; exit 1; }
    note "every pod has the limits that it declares, and nothing of MBCAS is left"
  fi
  step "removing the cluster ($where)"
  remove_cluster
  exit
fi

if [ -z "$image_dir" ]; then
  step "building the images"
  image_dir=build/images
  mkdir -p build
  log=build/$name.images.log
  if $dry_run; then log=/dev/null; fi
  run make -s images >"$log" 2>&1 || fail "the images do not build" "$(tail -5 "$log")"
fi

step "starting a cluster ($where)"
end() {
  local code=$?
  if $remove; then
    remove_cluster >/dev/null 2>&1 || true
  elif [ $code -ne 0 ] && [ -f "$state" ]; then
    printf 'The cluster still runs. To inspect it: export KUBECONFIG=%s\nTo remove it: %s\n' \
      "$kubeconfig" "scripts/mvp-test.sh --cleanup --name $name" >&2
  fi
  exit $code
}
trap end EXIT
start_cluster

step "starting samples whose limits are too low"
kubectl apply -f config/samples/namespace.yaml -f config/samples/cpu-stress.yaml -f config/samples/web.yaml >/dev/null
kubectl -n test-mbcas wait --for=condition=Ready pod --all --timeout=180s >/dev/null ||
  fail "the samples do not start" "$(kubectl -n test-mbcas get pods)"
two_reports() { [ "$(reports | wc -l)" -ge 2 ]; }
wait_until 120 two_reports || fail "the load of deploy/web reports no latencies" "$(reports)"
before=$(reports | tail -1)
note "the service: $before"

step "installing MBCAS"
kubectl apply -k overlays/dev >/dev/null || fail "the manifests were refused" "See above."
for what in deploy/mbcas-controller ds/mbcas-agent; do
  kubectl -n mbcas-system rollout status $what --timeout=180s >/dev/null || explain_failure "$what does not become ready"
done

step "waiting for limits to move"
for pod in cpu-stress-1 cpu-stress-2; do
  raised() { [ "$(limit "$pod")" -gt 200 ]; }
  wait_until 180 raised || explain_unchanged $pod
  note "$pod: 200m -> $(limit $pod)m"
done
served() { [ "$(server_limit)" != 250m ]; }
wait_until 180 served || explain_unchanged "$(web_pod)"
note "web: 250m -> $(server_limit)"
faster() {
  after=$(reports | tail -1)
  $dry_run || { [ -n "$after" ] && [ "$(p99 "$after")" -lt "$(p99 "$before")" ]; }
}
wait_until 120 faster ||
  fail "the service is no faster" "before: $before" "after:  $after" "Is the machine busy with other work?"
note "the service before: $before"
note "the service after:  $after"
restarts=$(kubectl -n test-mbcas get pods -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}')
case $restarts in *[1-9]*) fail "a container was restarted" "$(kubectl -n test-mbcas get pods)" ;; esac
echo
kubectl get podallocations -A
echo

if $remove; then
  step "restoring limits and uninstalling"
  uninstall
  step "removing the cluster ($where)"
  trap - EXIT
  remove_cluster
  $dry_run || step "passed: limits rose, the service became faster, no pod restarted, nothing is left"
  exit
fi

trap - EXIT
if $dry_run; then
  step "this was a dry run: no command was run"
  exit
fi
step "passed: limits rose, the service became faster, no pod restarted. The cluster is up."
cat <<END

To verify it yourself:
  export KUBECONFIG=$kubeconfig
END
case $kubectl in */*) echo "  export PATH=\"${kubectl%/*}:\$PATH\"" ;; esac
cat <<END
  kubectl -n mbcas-system get pods
  kubectl get podallocations -A -o wide
  kubectl -n mbcas-system logs deploy/mbcas-controller --all-pods --tail=20
  kubectl -n test-mbcas get events --field-selector reason=CPULimitRaised
  kubectl -n test-mbcas logs deploy/web -c load --tail=3
  kubectl -n test-mbcas exec cpu-stress-1 -- /workload stat

To remove everything:
  scripts/mvp-test.sh --cleanup --name $name
END
