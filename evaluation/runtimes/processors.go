// Shows what a program written in Go makes of a CPU limit that changes while it runs: how many
// threads it uses (GOMAXPROCS), and how much CPU. First it is given limits one after the other, in
// a cgroup that it makes for itself below the root, on cgroup v1 or v2. Then, if there is a program
// /mbcas (in the virtual machine) or $MBCAS, `mbcas run` decides about its limit while its load
// changes. docs/runtimes.md has the tables.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const step = 5 * time.Second // Go looks at the limit about once a second

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "processors:", err)
		os.Exit(1)
	}
}

func write(path, text string) { fail(os.WriteFile(path, []byte(text), 0o644)) }

// The directory of the cpu controller, and whether it is that of cgroup v2.
func controller() (string, bool) {
	if text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil &&
		strings.Contains(string(text), "cpu") {
		return "/sys/fs/cgroup", true
	}
	for _, name := range []string{"cpu,cpuacct", "cpu"} {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", name, "cgroup.procs")); err == nil {
			return filepath.Join("/sys/fs/cgroup", name), false
		}
	}
	fail(fmt.Errorf("no cpu controller below /sys/fs/cgroup"))
	return "", false
}

func limit(group string, v2 bool, millicores int) {
	if v2 {
		write(filepath.Join(group, "cpu.max"), fmt.Sprintf("%d 100000", millicores*100))
	} else {
		write(filepath.Join(group, "cpu.cfs_quota_us"), fmt.Sprint(millicores*100))
	}
}

func used() time.Duration {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// For how long the threads of the cgroup were held back so far.
func throttled(group string) time.Duration {
	text, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	fail(err)
	for _, line := range strings.Split(string(text), "\n") {
		var number int64
		if _, err := fmt.Sscanf(line, "throttled_usec %d", &number); err == nil {
			return time.Duration(number) * time.Microsecond
		}
		if _, err := fmt.Sscanf(line, "throttled_time %d", &number); err == nil {
			return time.Duration(number)
		}
	}
	return 0
}

// Work without an end, in a process of its own: a runtime looks for its limit when it starts.
func work() {
	group, v2 := os.Args[2], os.Args[3] == "v2"
	var rounds atomic.Int64
	for range 2 * runtime.NumCPU() {
		go func() {
			for {
				for i := 0; i < 100_000; i++ {
				}
				rounds.Add(1)
			}
		}()
	}
	fmt.Printf("%s on %d CPUs, cgroup %s\n\n| limit | GOMAXPROCS | CPU used | work, million rounds/s | "+
		"throttled, ms/s |\n|---|---|---|---|---|\n",
		runtime.Version(), runtime.NumCPU(), os.Args[3])
	most := 1000 * runtime.NumCPU()
	for _, millicores := range []int{500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 2500, 1500, 500} {
		if millicores > most {
			continue
		}
		limit(group, v2, millicores)
		time.Sleep(step / 2)
		begin, before, held, done := time.Now(), used(), throttled(group), rounds.Load()
		time.Sleep(step / 2)
		seconds := time.Since(begin).Seconds()
		fmt.Printf("| %dm | %d | %.2f | %.0f | %.0f |\n", millicores, runtime.GOMAXPROCS(0),
			(used()-before).Seconds()/seconds, float64(rounds.Load()-done)/10/seconds,
			(throttled(group)-held).Seconds()*1000/seconds)
	}
}

// The limit in force, as the cgroup says it.
func inForce() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Split(string(text), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		top, file := "/sys/fs/cgroup", "cpu.max"
		if strings.HasPrefix(parts[1], "cpu") && parts[1] != "cpuset" {
			top, file = filepath.Join(top, parts[1]), "cpu.cfs_quota_us"
		} else if parts[1] != "" {
			continue
		}
		quota, err := os.ReadFile(filepath.Join(top, parts[2], file))
		if err != nil {
			continue
		}
		var microseconds int
		if _, err := fmt.Sscan(string(quota), &microseconds); err == nil {
			return fmt.Sprintf("%dm", microseconds/100)
		}
	}
	return "none"
}

// Wants every CPU, then little, then every CPU again, and says every two seconds what it has.
func changing() {
	var busy atomic.Bool
	busy.Store(true)
	for range 2 * runtime.NumCPU() {
		go func() {
			for {
				if !busy.Load() {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}()
	}
	go func() { // 30 % of a CPU, all the time
		for {
			for begin := time.Now(); time.Since(begin) < 30*time.Millisecond; {
			}
			time.Sleep(70 * time.Millisecond)
		}
	}()
	out, err := os.Create(os.Args[2])
	fail(err)
	fmt.Fprint(out, "| second | wants | limit | GOMAXPROCS | CPU used |\n|---|---|---|---|---|\n")
	begin, before := time.Now(), used()
	for last := begin; ; {
		time.Sleep(2 * time.Second)
		second := int(time.Since(begin).Seconds())
		cpu := float64(used()-before) / float64(time.Since(last))
		last, before = time.Now(), used()
		wants := "every CPU"
		if !busy.Load() {
			wants = "0.3"
		}
		fmt.Fprintf(out, "| %d | %s | %s | %d | %.2f |\n", second, wants, inForce(), runtime.GOMAXPROCS(0), cpu)
		busy.Store(second < 20 || second >= 115)
	}
}

func managed(mbcas, self string) {
	directory, err := os.MkdirTemp("", "mbcas-runtimes-")
	fail(err)
	defer os.RemoveAll(directory)
	pods, course := filepath.Join(directory, "pods.yaml"), filepath.Join(directory, "course")
	// A runtime looks for its limit when it starts, so the limit has to be there before.
	write(pods, fmt.Sprintf("pods:\n  - {name: go, command: [/bin/sh, -c, %q, %q, %q], limit: 500m}\n",
		`sleep 3; exec "$0" changing "$1"`, self, course))
	run := exec.Command(mbcas, "run", pods, "--plain", "--duration", "145s", "--state", filepath.Join(directory, "state"))
	run.Stderr = os.Stderr
	changes, err := run.Output()
	fail(err)
	table, err := os.ReadFile(course)
	fail(err)
	fmt.Printf("\nUnder mbcas run, declared 500m:\n\n%s\n%s", table, changes)
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "changing" {
		changing()
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "work" {
		work()
		return
	}
	top, v2 := controller()
	version := "v1"
	if v2 {
		version = "v2"
		write(filepath.Join(top, "cgroup.subtree_control"), "+cpu")
	}
	group, err := os.MkdirTemp(top, "mbcas-runtimes-")
	fail(err)
	defer os.Remove(group)
	limit(group, v2, 500)
	self, err := os.Executable()
	fail(err)
	// The child is put into the cgroup by a shell, before it becomes the program.
	child, err := os.StartProcess("/bin/sh", []string{"sh", "-c",
		`echo $$ > "$1/cgroup.procs" && exec "$0" work "$1" "$2"`, self, group, version},
		&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	fail(err)
	state, err := child.Wait()
	fail(err)
	for range 50 {
		if os.Remove(group) == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !state.Success() {
		fail(fmt.Errorf("the program ended with %v", state))
	}
	mbcas := os.Getenv("MBCAS")
	if mbcas == "" {
		mbcas = "/mbcas"
	}
	if _, err := os.Stat(mbcas); err == nil {
		managed(mbcas, self)
	}
}
