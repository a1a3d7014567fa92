// The only program of the test image mbcas.local/workload:1, static, so that the image needs no files.
//   workload pause                                          sleeps until told to end
//   workload burn [--threads N] [--on-ms A] [--period-ms B] each thread takes A ms of CPU time every
//                                                           B ms; work that came too late is made up
//   workload serve PORT                                     answers each HTTP request with "ok"
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long long onNanos = 100 * 1000000LL;
static long long periodNanos = 100 * 1000000LL;

static long long nanos(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void* burn(void* unused) {
  long long start = nanos(CLOCK_MONOTONIC);
  for (;;) {
    long long cpuEnd = nanos(CLOCK_THREAD_CPUTIME_ID) + onNanos;
    while (nanos(CLOCK_THREAD_CPUTIME_ID) < cpuEnd) {
    }
    start += periodNanos;
    struct timespec next = {start / 1000000000LL, start % 1000000000LL};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  return unused;
}

static int runBurn(int argc, char** argv) {
  int threads = 1;
  for (int i = 0; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--threads") == 0) {
      threads = atoi(argv[i + 1]);
    } else if (strcmp(argv[i], "--on-ms") == 0) {
      onNanos = atoll(argv[i + 1]) * 1000000LL;
    } else if (strcmp(argv[i], "--period-ms") == 0) {
      periodNanos = atoll(argv[i + 1]) * 1000000LL;
    } else {
      fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  for (int i = 1; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, burn, NULL) != 0) {
      perror("pthread_create");
      return 1;
    }
  }
  burn(NULL);
  return 0;
}

static int runServe(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 64) != 0) {
    perror("listen");
    return 1;
  }
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0) {
      continue;
    }
    const struct timeval limit = {.tv_sec = 5};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char request[4096];
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
    if (read(connection, request, sizeof request) > 0) {
      (void)!write(connection, answer, sizeof answer - 1);
    }
    close(connection);
  }
}

static void quit(int unused) {
  (void)unused;
  _exit(0);
}

int main(int argc, char** argv) {
  // The first process of a container gets no default action for signals.
  signal(SIGTERM, quit);
  signal(SIGINT, quit);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);  // reaps, where processes share one pid namespace
  if (argc >= 2 && strcmp(argv[1], "burn") == 0) {
    return runBurn(argc - 2, argv + 2);
  }
  if (argc == 3 && strcmp(argv[1], "serve") == 0) {
    return runServe(atoi(argv[2]));
  }
  if (argc == 2 && strcmp(argv[1], "pause") == 0) {
    for (;;) {
      pause();
    }
  }
  fprintf(stderr, "usage: workload pause | burn [options] | serve PORT\n");
  return 2;
}
