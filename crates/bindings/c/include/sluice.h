/* Sluice for C: a client of a rack, and services that its workers run.
 *
 * If a status is not SLUICE_OK, sluice_last_error() has one line, for the calling thread, that says what is
 * wrong and what to do. Handles are values: a freed or invented one is refused. Any thread may call any
 * function at any time; a signal handler may call none. A pointer points to as much memory as the arguments
 * say, which nobody changes during the call; NULL is refused where something must be. Times are in
 * nanoseconds. docs/manual/c.md explains more.
 *
 * Made from the library's source; change it there.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. The library refuses a header of another version. */
#define SLUICE_ABI 1

/* The longest task, and the longest reply, in bytes. */
#define SLUICE_BYTES_MAX 65536

/* As a time to wait: without end. */
#define SLUICE_FOREVER UINT64_MAX

/* What a function came to. */
typedef enum sluice_status {
    SLUICE_OK = 0,
    /* A pointer is NULL where something must be. */
    SLUICE_NULL = 1,
    /* The handle was freed, or never was one of this kind. */
    SLUICE_NO_HANDLE = 2,
    /* The program was compiled with the header of another version. */
    SLUICE_OTHER_ABI = 3,
    /* The option is unknown, or its value makes no sense. */
    SLUICE_BAD_OPTION = 4,
    /* An argument makes no sense. */
    SLUICE_BAD_ARGUMENT = 5,
    /* The task or the reply is longer than SLUICE_BYTES_MAX. */
    SLUICE_TOO_LONG = 6,
    /* There is no room for another task of this type now. */
    SLUICE_BUSY = 7,
    /* The client was closed, or its socket failed. */
    SLUICE_CLOSED = 8,
    /* The handle was made before a fork, in the parent. */
    SLUICE_FORKED = 9,
    /* The controller did not answer in time. */
    SLUICE_UNREACHABLE = 10,
    /* The controller refuses this client or worker. */
    SLUICE_TURNED_AWAY = 11,
    /* The operating system, or a file, did not give what was needed. */
    SLUICE_SYSTEM = 12,
    /* A bug in the library. */
    SLUICE_INTERNAL = 13,
} sluice_status;

/* How a task ended. */
typedef enum sluice_kind {
    /* There is no outcome here. */
    SLUICE_KIND_NONE = 0,
    /* A worker ran the task and answered. */
    SLUICE_KIND_REPLY = 1,
    /* A worker ran the task, and its service failed: the bytes are its text. */
    SLUICE_KIND_FAILED = 2,
    /* The task certainly did not run. */
    SLUICE_KIND_REFUSED = 3,
    /* The task may have run. */
    SLUICE_KIND_UNKNOWN = 4,
} sluice_kind;

/* Why a task was refused, or is unknown. sluice_why_text() gives the word, sluice_outcome_text() a sentence. */
typedef enum sluice_why {
    SLUICE_WHY_NONE = 0,
    SLUICE_WHY_QUEUE_FULL = 1,
    SLUICE_WHY_NO_ROOM = 2,
    SLUICE_WHY_NO_WORKERS = 3,
    SLUICE_WHY_STALE_TOKENS = 4,
    SLUICE_WHY_UNSERVED = 5,
    SLUICE_WHY_NO_SLICE = 6,
    SLUICE_WHY_BUSY = 7,
    SLUICE_WHY_NEVER_SENT = 8,
    SLUICE_WHY_LATE = 9,
    SLUICE_WHY_LONG_BUDGET = 10,
    SLUICE_WHY_TOO_LONG = 11,
    SLUICE_WHY_UNKNOWN_LABEL = 12,
    SLUICE_WHY_NO_CLASS = 13,
    /* This one and those that follow are of tasks that may have run. */
    SLUICE_WHY_DEADLINE = 14,
    SLUICE_WHY_REPLY_GONE = 15,
    SLUICE_WHY_TOO_OLD = 16,
} sluice_why;

/* What the urgency of a task is. */
typedef enum sluice_urgency {
    SLUICE_URGENCY_NONE = 0,
    /* A class; class 0 goes first. */
    SLUICE_URGENCY_CLASS = 1,
    /* The expected service time, in nanoseconds. */
    SLUICE_URGENCY_WORK = 2,
} sluice_urgency;

/* Options of a client or a worker. */
typedef struct sluice_options {
    uint64_t id;
} sluice_options;

/* A registered client. */
typedef struct sluice_client {
    uint64_t id;
} sluice_client;

/* A queue of outcomes. */
typedef struct sluice_queue {
    uint64_t id;
} sluice_queue;

/* Labels that a task needs of its worker; an id of 0 is none. */
typedef struct sluice_labels {
    uint64_t id;
} sluice_labels;

/* A reply's bytes that the library keeps; an id of 0 is none. */
typedef struct sluice_bytes {
    uint64_t id;
} sluice_bytes;

/* A worker that runs in a thread. */
typedef struct sluice_worker {
    uint64_t id;
} sluice_worker;

/* The reply to the task that a service runs: good until the service returns, and on its thread only. */
typedef struct sluice_reply {
    uint64_t id;
} sluice_reply;

/* What a task is. If all but the type is 0, it is a task without urgency, budget and labels that has the
 * client's deadline. */
typedef struct sluice_spec {
    /* The task's type: its number in the plan. */
    uint16_t type;
    /* What `urgency` is, a sluice_urgency. */
    uint16_t urgency_is;
    /* 0. */
    uint32_t reserved;
    /* A class, or a time in nanoseconds. */
    uint64_t urgency;
    /* The task ends so long after it was submitted at the latest; 0: as the client's options say. */
    uint64_t deadline_ns;
    /* The task is worth beginning for so long; 0: until its deadline. */
    uint64_t budget_ns;
    /* What its worker must have. */
    sluice_labels labels;
} sluice_spec;

/* How a task ended. Give it back with sluice_outcome_free(). */
typedef struct sluice_outcome {
    sluice_kind kind;
    /* Why, if the task was refused or is unknown. */
    sluice_why why;
    /* The tag under which it was submitted to a queue. */
    uint64_t tag;
    /* The reply's bytes, or the text of a service that failed; never NULL. */
    const uint8_t *bytes;
    size_t length;
    /* The number of the worker that answered. */
    uint32_t worker;
    /* How many times the task was sent. */
    uint32_t attempts;
    /* What sluice_outcome_text() tells besides. */
    uint32_t detail;
    /* 0. */
    uint32_t reserved;
    /* How long the task waited in the switch. */
    uint64_t switch_wait_ns;
    /* How long the task waited at its worker. */
    uint64_t worker_wait_ns;
    /* How long its service ran. */
    uint64_t service_ns;
    /* For SLUICE_WHY_BUSY: another task has a chance after so long. */
    uint64_t retry_after_ns;
    /* What the library keeps of it until it is given back. */
    sluice_bytes kept;
} sluice_outcome;

/* A task, as its service sees it. It is there until the service returns. */
typedef struct sluice_task {
    /* The client's bytes: they may be anything. Never NULL. */
    const uint8_t *bytes;
    size_t length;
    uint16_t type;
    /* The task's number in its client's life: a repeat has the same. */
    uint32_t number;
    /* The client's life. */
    uint64_t client;
    /* The longest reply. */
    size_t reply_max;
    /* The longest reply that takes no further round trip. */
    size_t packet_max;
} sluice_task;

/* Runs one task: writes its reply with sluice_reply_write(), and returns 0. Any other value fails the task,
 * with the text of sluice_reply_fail() if there is one. No exception and no longjmp may leave it. */
typedef int (*sluice_serve)(void *context, const sluice_task *task, sluice_reply reply);

/* The code for the tasks of one type. A worker calls it on one thread, for one task at a time. */
typedef struct sluice_service {
    uint16_t type;
    sluice_serve serve;
    /* The first argument of `serve`; the library does not look at it. */
    void *context;
} sluice_service;

/* The library's version, such as "0.1.0". */
const char *sluice_version(void);

/* The SLUICE_ABI of the header that belongs to the library. */
uint32_t sluice_abi(void);

/* A status as a word, such as "busy"; "?" if there is no such status. */
const char *sluice_status_text(int status);

/* A sluice_why as a word, such as "queue-full"; "?" if there is no such one. */
const char *sluice_why_text(int why);

/* One line about the last call of this thread that did not return SLUICE_OK. Never NULL; good until a later
 * call of this thread fails. */
const char *sluice_last_error(void);

/* Called by sluice_options_new(), which passes the header's version. */
sluice_status sluice_options_new_of(uint32_t abi, sluice_options *options);

/* Sets an option. A value that makes no sense is refused here; an address or a file is looked at later.
 *
 * Of clients and workers:
 *   controller  HOST:PORT or a URL; its standbys, or the controllers of several spines, behind commas
 *               (127.0.0.1:7400)
 *   name        unlike all others (one of its own)
 *   listen      ADDRESS:PORT at which switch and workers reach it (127.0.0.1:0)
 *   ca          PEM file of the authority that signed the controller's certificate; turns TLS on
 *   identity    PEM files of the own certificate and its key, with a comma between
 *   dilation    a factor for all times of the network (1)
 *   link-mtu    the longest packet that the links carry, in bytes
 *   waiting     how to wait for packets: adaptive, spin or block (adaptive)
 *   pin         the core of the thread that handles packets
 * Of clients:
 *   patience    how long to wait for the registration, such as 5s or 300ms (5s)
 *   retry       on or off: whether a task may be tried again (on)
 *   deadline    of tasks that state none (5s times the dilation)
 * Of workers: slice, labels, quota, capacity, early (on or off) and drain-limit, as the flags of a worker. */
sluice_status sluice_options_set(sluice_options options, const char *key, const char *value);

/* Frees options; what was made with them stays. */
sluice_status sluice_options_free(sluice_options options);

/* Registers a client, and waits for that. A process that forks connects in the child. */
sluice_status sluice_client_connect(sluice_options options, sluice_client *client);

/* The number of a type by its name in the rack's plan. */
sluice_status sluice_client_type(sluice_client client, const char *name, uint16_t *type);

/* Takes no more tasks, waits until each has its outcome, and ends the registration. Threads that wait for
 * room, and later submits, are answered SLUICE_CLOSED. The handle stays until it is freed. */
sluice_status sluice_client_close(sluice_client client);

/* Frees a client. One that was not closed takes no more tasks, and ends those that it has at once: as
 * unknown, or as never sent. A child may free its parent's. */
sluice_status sluice_client_free(sluice_client client);

/* Submits a task and waits until it ends; waits for room first. The reply's bytes are written to `reply` if
 * they fit into `room` bytes; if they do not, or if `reply` is NULL, the library keeps them:
 * `outcome->bytes` is where they are. */
sluice_status sluice_submit(sluice_client client, const sluice_spec *spec, const void *bytes, size_t length,
                            void *reply, size_t room, sluice_outcome *outcome);

/* Like sluice_submit(), but answers SLUICE_BUSY if there is no room for the task now. */
sluice_status sluice_try_submit(sluice_client client, const sluice_spec *spec, const void *bytes,
                                size_t length, void *reply, size_t room, sluice_outcome *outcome);

/* Labels for tasks, by their names in the plan. */
sluice_status sluice_labels_new(const char *const *names, size_t count, sluice_labels *labels);

/* Frees labels; tasks that were submitted with them keep them. */
sluice_status sluice_labels_free(sluice_labels labels);

/* Called by sluice_queue_new(), which passes the header's version. */
sluice_status sluice_queue_new_of(uint32_t abi, sluice_queue *queue);

/* Submits a task whose outcome goes to a queue, under a tag; waits for room. */
sluice_status sluice_queue_submit(sluice_client client, sluice_queue queue, uint64_t tag,
                                  const sluice_spec *spec, const void *bytes, size_t length);

/* Like sluice_queue_submit(), but answers SLUICE_BUSY if there is no room for the task now. */
sluice_status sluice_queue_try_submit(sluice_client client, sluice_queue queue, uint64_t tag,
                                      const sluice_spec *spec, const void *bytes, size_t length);

/* Takes up to `most` outcomes that are there, and says how many. Does not wait. What was in `outcomes` is
 * overwritten, so give that back first. */
sluice_status sluice_queue_take(sluice_queue queue, sluice_outcome *outcomes, size_t most, size_t *count);

/* Waits until an outcome is there, for `longest_ns` at most, and takes up to `most`. The count is 0 if none
 * came. */
sluice_status sluice_queue_wait(sluice_queue queue, sluice_outcome *outcomes, size_t most,
                                uint64_t longest_ns, size_t *count);

/* A descriptor that poll() and epoll find readable while the queue has an outcome. It belongs to the queue:
 * do not read, write or close it. */
sluice_status sluice_queue_fd(sluice_queue queue, int *fd);

/* Frees a queue; outcomes that it has or would get are lost. Threads that wait on it are told so at once. */
sluice_status sluice_queue_free(sluice_queue queue);

/* Gives back what the library keeps of an outcome, and empties it. An empty outcome is fine. */
sluice_status sluice_outcome_free(sluice_outcome *outcome);

/* Writes how a task ended as a line for people, with what to do next, into `text`, which has room for
 * `room` bytes: cut there, and with a 0 at its end. Returns the whole line's length; 0 if the outcome was
 * given back, and the text is empty then. */
size_t sluice_outcome_text(const sluice_outcome *outcome, char *text, size_t room);

/* Appends bytes to a reply. A reply over SLUICE_BYTES_MAX fails the task. */
sluice_status sluice_reply_write(sluice_reply reply, const void *from, size_t length);

/* Fails the task with a text for its client. Returns 1, for `return sluice_reply_fail(reply, "why");`. */
int sluice_reply_fail(sluice_reply reply, const char *why);

/* States how much time the task still needs, before dilation: for early tokens. Call it at the start of the
 * work, and every few microseconds after. */
sluice_status sluice_task_left(sluice_reply reply, uint64_t left_ns);

/* Keeps the worker busy for so long after the service returns: for services that emulate work. */
sluice_status sluice_task_hold(sluice_reply reply, uint64_t span_ns);

/* Called by sluice_run_service(), which passes the header's version. */
int sluice_run_service_of(uint32_t abi, int argc, char *const *argv, const sluice_service *services,
                          size_t count);

/* Called by sluice_run_service_told(), which passes the header's version. */
int sluice_run_service_told_of(uint32_t abi, int argc, char *const *argv, const sluice_service *services,
                               size_t count);

/* Does to the service that sluice_run_service_told() runs what a signal does to others: SIGTERM and SIGINT
 * drain it, a second one ends it at once; SIGHUP has it read its certificates again. From any thread, at any
 * time, but from no signal handler. A signal before the service runs waits for it. */
sluice_status sluice_tell_signal(int signal);

/* Starts a worker in a thread of its own. It registers there, and goes on trying until it is stopped. The
 * thread blocks signals. A program that a service starts there inherits that: unblock them for it. */
sluice_status sluice_worker_start(sluice_options options, const sluice_service *services, size_t count,
                                  sluice_worker *worker);

/* Has a worker take no more tasks, finish those that it has, and end. A second call ends it at once. Neither
 * waits. */
sluice_status sluice_worker_stop(sluice_worker worker);

/* Waits until a worker has ended, and says whether it ended well. */
sluice_status sluice_worker_wait(sluice_worker worker);

/* Frees a worker; one that runs is ended at once, and waited for: then no function of its services runs. */
sluice_status sluice_worker_free(sluice_worker worker);

/* New options. Refuses a program that was compiled with the header of another version. */
static inline sluice_status sluice_options_new(sluice_options *options) {
    return sluice_options_new_of(SLUICE_ABI, options);
}

/* A new queue. */
static inline sluice_status sluice_queue_new(sluice_queue *queue) {
    return sluice_queue_new_of(SLUICE_ABI, queue);
}

/* The whole main of a service: reads the flags that all workers share (--controller, --name, --slice and
 * others), serves until SIGTERM or SIGINT, drains, and returns the exit code. SIGPIPE is ignored from then
 * on. */
static inline int sluice_run_service(int argc, char *const *argv, const sluice_service *services,
                                     size_t count) {
    return sluice_run_service_of(SLUICE_ABI, argc, argv, services, count);
}

/* Like sluice_run_service(), but leaves all signals to the program, which tells them with
 * sluice_tell_signal(): for runtimes that forbid handlers of others, such as Go's. */
static inline int sluice_run_service_told(int argc, char *const *argv, const sluice_service *services,
                                          size_t count) {
    return sluice_run_service_told_of(SLUICE_ABI, argc, argv, services, count);
}

#ifdef __cplusplus
}
#endif

#endif
