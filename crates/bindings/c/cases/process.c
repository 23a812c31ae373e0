/* What may happen to the process of a client: process WAY CONTROLLER [SWITCH]. A worker serves type 9, which reverses. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

static const char *controller;

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, sluice_last_error());
    _exit(1);
}

static void must(sluice_status status, const char *what) {
    if (status != SLUICE_OK) die(what);
}

static sluice_status connect_to(const char *where, const char *patience, sluice_client *client) {
    sluice_options options;
    must(sluice_options_new(&options), "options");
    must(sluice_options_set(options, "controller", where), "controller");
    must(sluice_options_set(options, "patience", patience), "patience");
    sluice_status status = sluice_client_connect(options, client);
    must(sluice_options_free(options), "options");
    return status;
}

static sluice_client connect_client(void) {
    sluice_client client;
    must(connect_to(controller, "60s", &client), "connect");
    return client;
}

static sluice_spec spec_of(uint64_t deadline_ns) {
    sluice_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.type = 9;
    spec.deadline_ns = deadline_ns;
    return spec;
}

/* Has a word reversed; returns the status, and checks the reply. */
static sluice_status reversed(sluice_client client) {
    sluice_spec spec = spec_of(60u * 1000000000ull);
    sluice_outcome outcome;
    char reply[16];
    sluice_status status = sluice_submit(client, &spec, "stressed", 8, reply, sizeof reply, &outcome);
    if (status != SLUICE_OK) return status;
    if (outcome.kind != SLUICE_KIND_REPLY || outcome.length != 8 || memcmp(reply, "desserts", 8) != 0) die("the reply");
    must(sluice_outcome_free(&outcome), "give back");
    return status;
}

static void says_forked(sluice_status status, const char *what) {
    if (status != SLUICE_FORKED || !strstr(sluice_last_error(), "of its own in the child")) die(what);
}

/* A child is told to connect itself, and does; its parent goes on. */
static void forks(void) {
    sluice_client client = connect_client();
    sluice_queue queue;
    sluice_outcome outcome, kept;
    sluice_spec spec = spec_of(0);
    size_t count;
    must(sluice_queue_new(&queue), "queue");
    must(reversed(client), "before the fork");
    must(sluice_submit(client, &spec, "kept", 4, NULL, 0, &kept), "a reply that is kept");
    pid_t child = fork();
    if (child == 0) {
        says_forked(reversed(client), "submit in the child");
        says_forked(sluice_queue_submit(client, queue, 1, &spec, "", 0), "a queue in the child");
        says_forked(sluice_queue_take(queue, &outcome, 1, &count), "take in the child");
        says_forked(sluice_client_close(client), "close in the child");
        must(sluice_outcome_free(&kept), "give back in the child");
        must(sluice_client_free(client), "free in the child");
        must(sluice_queue_free(queue), "free in the child");
        client = connect_client();
        must(reversed(client), "a client of the child");
        must(sluice_client_close(client), "close of the child's");
        exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) die("the child");
    must(reversed(client), "after the fork");
    must(sluice_outcome_free(&kept), "give back");
    must(sluice_client_close(client), "close");
    must(sluice_client_free(client), "free");
    must(sluice_queue_free(queue), "free");
}

static pthread_t main_thread;
static volatile sig_atomic_t alarms, elsewhere;

static void on_alarm(int number) {
    (void)number;
    ++alarms;
    if (!pthread_equal(pthread_self(), main_thread)) ++elsewhere;
}

/* Signals that interrupt system calls change nothing, and come to threads of the application only, also while these
 * wait. */
static void interrupted(void) {
    struct sigaction action;
    struct itimerval every = {{0, 500}, {0, 500}};
    sluice_queue queue;
    sluice_outcome outcome;
    sluice_spec spec = spec_of(60u * 1000000000ull);
    size_t count;
    main_thread = pthread_self();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    sluice_client client;
    if (connect_to("127.0.0.1:1", "1s", &client) != SLUICE_UNREACHABLE) die("nobody is there");
    if (alarms < 5) die("signals wait for a connect");
    client = connect_client();
    must(sluice_queue_new(&queue), "queue");
    while (alarms < 500) {
        must(reversed(client), "interrupted");
        must(sluice_queue_submit(client, queue, 1, &spec, "abc", 3), "queue");
        must(sluice_queue_wait(queue, &outcome, 1, SLUICE_FOREVER, &count), "wait");
        if (count != 1 || outcome.length != 3 || memcmp(outcome.bytes, "cba", 3) != 0) die("the queue's reply");
        must(sluice_outcome_free(&outcome), "give back");
    }
    must(sluice_client_close(client), "close");
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    if (elsewhere != 0) die("a handler ran on a thread of the library");
}

/* The rack dies. The process gets no SIGPIPE, and each task still ends. */
static void alone(pid_t rack_switch) {
    sluice_client client = connect_client();
    sluice_spec spec = spec_of(700u * 1000000ull);
    sluice_outcome outcome;
    must(reversed(client), "before");
    kill(rack_switch, SIGKILL);
    for (int task = 0; task < 3; ++task) {
        must(sluice_submit(client, &spec, "x", 1, NULL, 0, &outcome), "submit");
        if (outcome.kind != SLUICE_KIND_UNKNOWN && outcome.kind != SLUICE_KIND_REFUSED) die("nobody is there");
        must(sluice_outcome_free(&outcome), "give back");
    }
    must(sluice_client_free(client), "free");
}

static sluice_client shared;

static void *submits(void *unused) {
    for (int task = 0; task < 3; ++task) must(reversed(shared), "a thread");
    return unused;
}

static void *submits_until_closed(void *unused) {
    sluice_status status;
    do status = reversed(shared);
    while (status == SLUICE_OK);
    if (status != SLUICE_CLOSED) die("while it closes");
    return unused;
}

static void run_threads(void *(*what)(void *), pthread_t *threads, int count) {
    for (int at = 0; at < count; ++at) {
        if (pthread_create(&threads[at], NULL, what, NULL) != 0) die("a thread");
    }
}

/* Threads come and go, and one closes the client under the others. */
static void threads(void) {
    enum { MANY = 50 };
    pthread_t each[MANY];
    shared = connect_client();
    for (int turn = 0; turn < 4; ++turn) {
        run_threads(submits, each, MANY);
        for (int at = 0; at < MANY; ++at) pthread_join(each[at], NULL);
    }
    run_threads(submits_until_closed, each, MANY);
    must(reversed(shared), "beside the others");
    must(sluice_client_close(shared), "close");
    for (int at = 0; at < MANY; ++at) pthread_join(each[at], NULL);
    must(sluice_client_free(shared), "free");
}

static int serves_nothing(void *context, const sluice_task *task, sluice_reply reply) {
    (void)context;
    (void)task;
    (void)reply;
    return 0;
}

/* A service that is told twice to end ends at once, and its program goes on: beyond the second after which it would be
 * ended if the service did not return. */
static void outlives(void) {
    char *args[] = {(char *)"service", (char *)"--controller", (char *)controller, (char *)"--quiet", NULL};
    const sluice_service service = {9, serves_nothing, NULL};
    const struct timespec span = {1, 500000000};
    must(sluice_tell_signal(SIGTERM), "a first signal");
    must(sluice_tell_signal(SIGTERM), "a second signal");
    if (sluice_run_service_told(4, args, &service, 1) == 0) die("it did not drain");
    nanosleep(&span, NULL);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    controller = argv[2];
    if (strcmp(argv[1], "forks") == 0) forks();
    else if (strcmp(argv[1], "interrupted") == 0) interrupted();
    else if (strcmp(argv[1], "alone") == 0 && argc == 4) alone((pid_t)atol(argv[3]));
    else if (strcmp(argv[1], "threads") == 0) threads();
    else if (strcmp(argv[1], "outlives") == 0) outlives();
    else return 2;
    printf("well\n");
    return 0;
}
