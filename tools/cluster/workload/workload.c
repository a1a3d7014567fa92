// The only program of the image mbcas.local/workload:1, static, so that the image needs no files.
//   workload pause                                          sleeps until it is stopped
//   workload burn [--threads N] [--on-ms A] [--period-ms B] each thread takes A ms of CPU time every
//                                                           B ms; work that came too late is made up
//   workload serve PORT [--work-ms W]                       answers each HTTP request with "ok", after
//                                                           W ms of CPU time
//   workload load ADDRESS PORT [--rate R] [--report-s S]    R requests a second at random moments,
//                                                           whether or not earlier ones were answered;
//                                                           every S s a line with their latencies
//   workload drive PORT [--seed S]                          the same, led from outside: lines `rate R` and
//                                                           `targets ADDRESS...` on standard input; for
//                                                           each request a line: when it was due (ms of
//                                                           the clock CLOCK_MONOTONIC), its latency in ms,
//                                                           and 1 if it was answered; S gives the moments
//   workload stat                                           what the kernel counts of this container: the
//                                                           files cpu.stat and cpu.stat.local
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long long nanos(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleepUntil(long long moment) {
  struct timespec next = {moment / 1000000000LL, moment % 1000000000LL};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
}

static void work(long long cpuNanos) {
  long long end = nanos(CLOCK_THREAD_CPUTIME_ID) + cpuNanos;
  while (nanos(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

struct Option {
  const char* name;
  double* value;
};

// Options are pairs of a name and a number. Returns whether all were known.
static int readOptions(int argc, char** argv, const struct Option* options) {
  for (int i = 0; i < argc; i += 2) {
    const struct Option* option = options;
    while (option->name && strcmp(option->name, argv[i]) != 0) ++option;
    char* end = NULL;
    double value = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;
    if (!option->name || !end || *end || !(value > 0)) {
      fprintf(stderr, "%s: no such option, or not followed by a number above 0\n", argv[i]);
      return 0;
    }
    *option->value = value;
  }
  return 1;
}

static int startThread(void* (*function)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0) {
    perror("pthread_create");
    return 0;
  }
  pthread_detach(thread);
  return 1;
}

// ---- burn

static double onMs = 100, periodMs = 100;

static void* burn(void* unused) {
  long long start = nanos(CLOCK_MONOTONIC);
  for (;;) {
    work((long long)(onMs * 1e6));
    start += (long long)(periodMs * 1e6);
    sleepUntil(start);
  }
  return unused;
}

static int runBurn(int argc, char** argv) {
  double threads = 1;
  const struct Option options[] = {
      {"--threads", &threads}, {"--on-ms", &onMs}, {"--period-ms", &periodMs}, {0}};
  if (!readOptions(argc, argv, options)) return 2;
  for (int i = 1; i < (int)threads; ++i) {
    if (!startThread(burn, NULL)) return 1;
  }
  burn(NULL);
  return 0;
}

// ---- serve

static double workMs = 0;

static void* answer(void* argument) {
  int connection = (int)(long)argument;
  const struct timeval limit = {.tv_sec = 5};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char request[4096];
  static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
  if (read(connection, request, sizeof request) > 0) {
    work((long long)(workMs * 1e6));
    (void)!write(connection, text, sizeof text - 1);
  }
  close(connection);
  return NULL;
}

static int runServe(int port, int argc, char** argv) {
  const struct Option options[] = {{"--work-ms", &workMs}, {0}};
  if (!readOptions(argc, argv, options)) return 2;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 512) != 0) {
    perror("listen");
    return 1;
  }
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection >= 0 && !startThread(answer, (void*)(long)connection)) close(connection);
  }
}

// ---- load

enum { kSenders = 128, kMost = 1 << 16 };
static double rate = 20, reportS = 5, seed = 0;
enum { kTargets = 64 };
static struct sockaddr_in targets[kTargets];
static int targetCount, nextTarget;
static int eachIsTold;  // drive
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, turn = PTHREAD_MUTEX_INITIALIZER;
static long long nextArrival;
static double latencies[kMost];  // ms, since the last report
static int count, failed;

// The moment at which the next request is due: the times between are exponentially distributed.
static long long nextMoment(void) {
  pthread_mutex_lock(&mutex);
  while (!(rate > 0) || targetCount == 0) {
    pthread_mutex_unlock(&mutex);
    usleep(10000);
    pthread_mutex_lock(&mutex);
    nextArrival = nanos(CLOCK_MONOTONIC);
  }
  long long moment = nextArrival;
  nextArrival += (long long)(-log(1 - drand48()) / rate * 1e9);
  pthread_mutex_unlock(&mutex);
  return moment;
}

// Requests go to the targets in turn.
static struct sockaddr_in chooseTarget(void) {
  pthread_mutex_lock(&mutex);
  struct sockaddr_in chosen = targets[nextTarget++ % targetCount];
  pthread_mutex_unlock(&mutex);
  return chosen;
}

static int request(void) {
  const struct sockaddr_in target = chooseTarget();
  static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  const struct timeval limit = {.tv_sec = 30};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  char reply[256];
  int good = connect(connection, (struct sockaddr*)&target, sizeof target) == 0 &&
             write(connection, text, sizeof text - 1) == sizeof text - 1 &&
             read(connection, reply, sizeof reply) > 12 && strncmp(reply + 9, "200", 3) == 0;
  close(connection);
  return good;
}

// A latency counts from when the request was due, so that a slow server cannot hide behind
// requests that were never sent.
static void* send1(void* unused) {
  for (;;) {
    // One waits for the next moment at a time, so that a new rate holds at once.
    pthread_mutex_lock(&turn);
    long long due = nextMoment();
    sleepUntil(due);
    pthread_mutex_unlock(&turn);
    int good = request();
    double ms = (double)(nanos(CLOCK_MONOTONIC) - due) / 1e6;
    pthread_mutex_lock(&mutex);
    if (eachIsTold) {
      printf("%.1f %.2f %d\n", (double)due / 1e6, ms, good);
    } else if (!good) {
      ++failed;
    } else if (count < kMost) {
      latencies[count++] = ms;
    }
    pthread_mutex_unlock(&mutex);
  }
  return unused;
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int addTarget(const char* address, int port) {
  struct sockaddr_in target = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  if (targetCount == kTargets || inet_pton(AF_INET, address, &target.sin_addr) != 1) {
    fprintf(stderr, "not an address, as 127.0.0.1: %s\n", address);
    return 0;
  }
  targets[targetCount++] = target;
  return 1;
}

static int startSenders(void) {
  srand48(seed > 0 ? (long)seed : time(NULL));
  nextArrival = nanos(CLOCK_MONOTONIC);
  for (int i = 0; i < kSenders; ++i) {
    if (!startThread(send1, NULL)) return 0;
  }
  return 1;
}

static int runDrive(int port, int argc, char** argv) {
  const struct Option options[] = {{"--seed", &seed}, {0}};
  if (!readOptions(argc, argv, options)) return 2;
  eachIsTold = 1;
  rate = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!startSenders()) return 1;
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    char* word = strtok(line, " \n");
    pthread_mutex_lock(&mutex);
    if (word && strcmp(word, "rate") == 0) {
      word = strtok(NULL, " \n");
      rate = word ? atof(word) : 0;
    } else if (word && strcmp(word, "targets") == 0) {
      targetCount = 0;
      while ((word = strtok(NULL, " \n"))) addTarget(word, port);
    }
    pthread_mutex_unlock(&mutex);
  }
  return 0;
}

static int runLoad(const char* address, int port, int argc, char** argv) {
  const struct Option options[] = {{"--rate", &rate}, {"--report-s", &reportS}, {0}};
  if (!readOptions(argc, argv, options)) return 2;
  if (!addTarget(address, port) || !startSenders()) return 2;
  for (;;) {
    struct timespec pause = {(time_t)reportS, (long)((reportS - floor(reportS)) * 1e9)};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&mutex);
    qsort(latencies, (size_t)count, sizeof *latencies, ascending);
    double median = count ? latencies[count / 2] : 0, tail = count ? latencies[count * 99 / 100] : 0;
    printf("%.1f requests/s, p50 %.1f ms, p99 %.1f ms, %d failed\n", count / reportS, median, tail,
           failed);
    fflush(stdout);
    count = failed = 0;
    pthread_mutex_unlock(&mutex);
  }
}

static void quit(int unused) {
  (void)unused;
  _exit(0);
}

// Copies a file of the container's own cgroup to standard output; 0 where there is none. The cgroup is
// where the runtime mounts it: at the top on cgroup v2, in the directory of the cpu controller on v1.
static int showCgroupFile(const char* name) {
  const char* places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
  for (unsigned i = 0; i < sizeof places / sizeof *places; ++i) {
    char text[4096];
    snprintf(text, sizeof text, "%s/%s", places[i], name);
    FILE* file = fopen(text, "r");
    if (!file) continue;
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    printf("%s:\n", name);
    fwrite(text, 1, size, stdout);
    return 1;
  }
  return 0;
}

static int runStat(void) {
  if (!showCgroupFile("cpu.stat")) {
    fprintf(stderr, "workload: no cpu.stat below /sys/fs/cgroup\n");
    return 1;
  }
  showCgroupFile("cpu.stat.local");  // newer kernels only
  return 0;
}

int main(int argc, char** argv) {
  // The first process of a container gets no default action for signals.
  signal(SIGTERM, quit);
  signal(SIGINT, quit);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);  // reaps, where processes share one pid namespace
  const char* command = argc >= 2 ? argv[1] : "";
  if (strcmp(command, "stat") == 0) return runStat();
  if (strcmp(command, "burn") == 0) return runBurn(argc - 2, argv + 2);
  if (strcmp(command, "serve") == 0 && argc >= 3) return runServe(atoi(argv[2]), argc - 3, argv + 3);
  if (strcmp(command, "drive") == 0 && argc >= 3) return runDrive(atoi(argv[2]), argc - 3, argv + 3);
  if (strcmp(command, "load") == 0 && argc >= 4) {
    return runLoad(argv[2], atoi(argv[3]), argc - 4, argv + 4);
  }
  if (strcmp(command, "pause") == 0) {
    for (;;) pause();
  }
  fprintf(stderr, "usage: workload pause | burn [options] | serve PORT [options] | load ADDRESS PORT "
                  "[options] | drive PORT [options] | stat\n");
  return 2;
}
