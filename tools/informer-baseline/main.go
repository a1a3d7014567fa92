// The yardstick for mbcas/kube: a client-go informer on all pods, by default or with a transform that
// strips what a CPU controller does not need, and the pods to measure with.
//
//	informer-baseline -kubeconfig F fill  -pods 10000    create pods of about 11 KB each
//	informer-baseline -kubeconfig F watch -mode default  sync once, print one line of JSON, exit
//	informer-baseline -kubeconfig F watch -mode stripped
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "informer-baseline"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.Burst = 1000, 1000
	config.WarningHandler = rest.NoWarnings{}
	command := flag.NewFlagSet(flag.Arg(0), flag.ExitOnError)
	pods := command.Int("pods", 10000, "how many")
	mode := command.String("mode", "default", "default or stripped")
	timeout := command.Duration("timeout", 5*time.Minute, "for the sync")
	if flag.NArg() == 0 {
		check(fmt.Errorf("a command is missing: fill or watch"))
	}
	check(command.Parse(flag.Args()[1:]))
	switch flag.Arg(0) {
	case "fill":
		fill(kubernetes.NewForConfigOrDie(config), *pods)
	case "watch":
		watch(kubernetes.NewForConfigOrDie(config), *mode, *timeout)
	default:
		check(fmt.Errorf("unknown command %q", flag.Arg(0)))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer-baseline:", err)
		os.Exit(1)
	}
}

// --- fill ---

func fill(client *kubernetes.Clientset, count int) {
	ctx := context.Background()
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if !errors.IsAlreadyExists(err) {
		check(err)
	}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range numbers {
				fillOne(ctx, client, i)
			}
		}()
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

func fillOne(ctx context.Context, client *kubernetes.Clientset, i int) {
	pods := client.CoreV1().Pods(namespace)
	pod := makePod(i)
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if errors.IsAlreadyExists(err) {
		return
	}
	check(err)
	// The status comes from the kubelet in a few writes; one is enough for its managedFields.
	status, err := json.Marshal(map[string]any{"status": makeStatus(pod, i)})
	check(err)
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, status,
		metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	check(err)
}

func makePod(i int) *corev1.Pod {
	app := fmt.Sprintf("checkout-%03d", i/40)
	hash := fmt.Sprintf("%x", 0x5d8f7b9c00+i/40)
	labels := map[string]string{
		"app.kubernetes.io/name":       app,
		"app.kubernetes.io/instance":   app + "-production",
		"app.kubernetes.io/component":  "backend",
		"app.kubernetes.io/part-of":    "storefront",
		"app.kubernetes.io/managed-by": "Helm",
		"pod-template-hash":            hash,
		"topology-group":               fmt.Sprintf("group-%d", i%7),
	}
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s-%s-%05d", app, hash, i),
			Namespace: namespace,
			Labels:    labels,
			Annotations: map[string]string{
				"prometheus.io/scrape":                           "true",
				"prometheus.io/port":                             "9102",
				"checksum/config":                                strings.Repeat("7d3f", 16),
				"cni.projectcalico.org/containerID":              strings.Repeat("ab12", 16),
				"cni.projectcalico.org/podIP":                    fmt.Sprintf("10.%d.%d.%d/32", i>>16&255, i>>8&255, i&255),
				"kubectl.kubernetes.io/restartedAt":              "2026-01-15T09:30:00Z",
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash,
				UID:        types.UID(fmt.Sprintf("3f9e4c1a-77aa-4b6e-9d10-%012x", i/40)),
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:           fmt.Sprintf("node-%03d.eu-west-1.compute.internal", i%100),
			PriorityClassName:  "",
			ServiceAccountName: app,
			Containers: []corev1.Container{
				makeContainer("server", "registry.example.com/storefront/checkout-server:v1.27.3", "500m", "1", "512Mi", "1Gi", 8),
				makeContainer("envoy-proxy", "registry.example.com/mesh/envoy:v1.31.0", "100m", "250m", "128Mi", "256Mi", 3),
			},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: app + "-tls"}}},
			},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
			},
		},
	}
}

func makeContainer(name, image, cpu, cpuLimit, memory, memoryLimit string, vars int) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz/ready", Port: intOrString(9102), Scheme: "HTTP"}},
		InitialDelaySeconds: 5, PeriodSeconds: 10, TimeoutSeconds: 2,
	}
	container := corev1.Container{
		Name: name, Image: image, Args: []string{"--config=/etc/app/config.yaml", "--log-level=info"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9102}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)},
			Limits:   corev1.ResourceList{"cpu": resource.MustParse(cpuLimit), "memory": resource.MustParse(memoryLimit)},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/app"}, {Name: "scratch", MountPath: "/tmp"},
			{Name: "tls", MountPath: "/etc/tls", ReadOnly: true},
		},
		ReadinessProbe: probe, LivenessProbe: probe,
	}
	for v := range vars {
		container.Env = append(container.Env, corev1.EnvVar{
			Name: fmt.Sprintf("STOREFRONT_SETTING_%02d", v), Value: fmt.Sprintf("value-of-setting-%02d", v)})
	}
	return container
}

func makeStatus(pod *corev1.Pod, i int) corev1.PodStatus {
	at := metav1.NewTime(time.Date(2026, 1, 15, 9, 30, 0, 0, time.UTC))
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	yes := true
	status := corev1.PodStatus{
		Phase: "Running", HostIP: "192.168.1.10", PodIP: ip, StartTime: &at, ObservedGeneration: 1,
		PodIPs: []corev1.PodIP{{IP: ip}}, HostIPs: []corev1.HostIP{{IP: "192.168.1.10"}},
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: "True", LastTransitionTime: at, ObservedGeneration: 1})
	}
	for n, container := range pod.Spec.Containers {
		resources := container.Resources
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &yes,
			ImageID:            "registry.example.com/x@sha256:" + strings.Repeat("9c", 32),
			ContainerID:        fmt.Sprintf("containerd://%064x", i*10+n),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			AllocatedResources: resources.Requests, Resources: &resources,
		})
	}
	return status
}

// --- watch ---

type report struct {
	Client      string  `json:"client"`
	Pods        int     `json:"pods"`
	BaseRSS     int     `json:"baseRssBytes"`
	SyncedRSS   int     `json:"syncedRssBytes"`
	ReturnedRSS int     `json:"returnedRssBytes"`
	LiveHeap    uint64  `json:"liveHeapBytes"`
	SyncSeconds float64 `json:"syncSeconds"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	BytesPerPod int     `json:"rssBytesPerPod"`
}

func watch(client *kubernetes.Clientset, mode string, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := client.Discovery().ServerVersion() // the connection is not what is measured
	check(err)
	r := report{Client: "client-go " + mode, BaseRSS: rss()}
	cpu, start := cpuTime(), time.Now()

	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if mode == "stripped" {
		check(informer.SetTransform(strip))
	}
	handled := 0
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { handled++ }})
	check(err)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		check(fmt.Errorf("not synced after %v", timeout))
	}
	r.SyncSeconds, r.CPUSeconds = time.Since(start).Seconds(), cpuTime()-cpu
	r.Pods, r.SyncedRSS = len(informer.GetStore().ListKeys()), rss()
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.ReturnedRSS, r.LiveHeap = rss(), memory.HeapAlloc
	r.BytesPerPod = (r.SyncedRSS - r.BaseRSS) / max(1, r.Pods)
	check(json.NewEncoder(os.Stdout).Encode(r))
	runtime.KeepAlive(informer)
}

// What a CPU controller needs of a pod, and nothing else.
func strip(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Generation: pod.Generation, Labels: pod.Labels, Annotations: pod.Annotations,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority, RestartPolicy: pod.Spec.RestartPolicy},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, QOSClass: pod.Status.QOSClass, ObservedGeneration: pod.Status.ObservedGeneration,
			Conditions: pod.Status.Conditions,
		},
	}
	for _, c := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers,
			corev1.Container{Name: c.Name, Resources: c.Resources, ResizePolicy: c.ResizePolicy})
	}
	for _, s := range pod.Status.ContainerStatuses {
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, ContainerID: s.ContainerID, State: s.State, RestartCount: s.RestartCount,
			Resources: s.Resources, AllocatedResources: s.AllocatedResources,
		})
	}
	return kept, nil
}

func rss() int {
	data, err := os.ReadFile("/proc/self/statm")
	check(err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	check(err)
	return pages * os.Getpagesize()
}

func cpuTime() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
