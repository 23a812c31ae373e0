/* The conformance cases in C: cases SLUICE CASES SERVICE. SLUICE is the program, CASES the folder of cases.txt, SERVICE the
 * conformance service. Each task is submitted in each way that C has. */
#define _POSIX_C_SOURCE 200809L
#include "case.h"

#include <poll.h>

#include <sluice.h>

#define TAG 0x1234567890abcdefu

static void must(sluice_status status, const char *what) {
    if (status != SLUICE_OK) die("%s: %s: %s", what, sluice_status_text((int)status), sluice_last_error());
}

static sluice_spec spec_of(const struct step *act) {
    sluice_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.type = (uint16_t)number_of(act, "type", 0);
    spec.deadline_ns = number_of(act, "deadline_ns", 0);
    spec.budget_ns = number_of(act, "budget_ns", 0);
    const struct value *label = value_of(act, "label");
    if (label) {
        char *name = strndup(label->bytes, label->length);
        const char *names[] = {name};
        must(sluice_labels_new(names, 1, &spec.labels), "labels");
        free(name);
    }
    return spec;
}

typedef sluice_status (*submit_way)(sluice_client, const sluice_spec *, const void *, size_t, sluice_outcome *);

static unsigned char memory[SLUICE_BYTES_MAX];

static sluice_status into_own_memory(sluice_client client, const sluice_spec *spec, const void *bytes,
                                     size_t length, sluice_outcome *outcome) {
    sluice_status status = sluice_submit(client, spec, bytes, length, memory, sizeof memory, outcome);
    if (status == SLUICE_OK && outcome->kept.id != 0) die("there was room for the reply");
    return status;
}

static sluice_status into_kept_memory(sluice_client client, const sluice_spec *spec, const void *bytes,
                                      size_t length, sluice_outcome *outcome) {
    return sluice_submit(client, spec, bytes, length, memory, 1, outcome);
}

static sluice_status without_waiting_for_room(sluice_client client, const sluice_spec *spec, const void *bytes,
                                              size_t length, sluice_outcome *outcome) {
    return sluice_try_submit(client, spec, bytes, length, NULL, 0, outcome);
}

static sluice_status at_a_queue(sluice_client client, const sluice_spec *spec, const void *bytes, size_t length,
                                sluice_outcome *outcome) {
    sluice_queue queue;
    size_t count;
    must(sluice_queue_new(&queue), "queue");
    sluice_status status = sluice_queue_submit(client, queue, TAG, spec, bytes, length);
    if (status == SLUICE_OK) {
        must(sluice_queue_wait(queue, outcome, 1, SLUICE_FOREVER, &count), "wait");
        if (count != 1 || outcome->tag != TAG) die("a queue gives another task");
    }
    must(sluice_queue_free(queue), "queue");
    return status;
}

static sluice_status with_poll(sluice_client client, const sluice_spec *spec, const void *bytes, size_t length,
                               sluice_outcome *outcome) {
    sluice_queue queue;
    size_t count;
    struct pollfd poll_of = {-1, POLLIN, 0};
    must(sluice_queue_new(&queue), "queue");
    must(sluice_queue_fd(queue, &poll_of.fd), "descriptor");
    sluice_status status = sluice_queue_try_submit(client, queue, TAG, spec, bytes, length);
    if (status == SLUICE_OK) {
        if (poll(&poll_of, 1, -1) != 1) die("poll does not find the queue");
        must(sluice_queue_take(queue, outcome, 1, &count), "take");
        if (count != 1 || outcome->tag != TAG) die("the descriptor of an empty queue is readable");
        if (poll(&poll_of, 1, 0) != 0) die("the descriptor of an empty queue is readable");
    }
    must(sluice_queue_free(queue), "queue");
    return status;
}

static const struct {
    const char *name;
    submit_way submit;
} WAYS[] = {
    {"into own memory", into_own_memory},
    {"into kept memory", into_kept_memory},
    {"without waiting for room", without_waiting_for_room},
    {"at a queue", at_a_queue},
    {"with poll", with_poll},
};

static const char *kind_word(sluice_kind kind) {
    static const char *const words[] = {"none", "reply", "failed", "refused", "unknown"};
    return words[kind];
}

static void submit(const struct test_case *of, sluice_client client) {
    size_t length;
    char *bytes = task_of(&of->act, &length);
    sluice_spec spec = spec_of(&of->act);
    for (size_t way = 0; way < sizeof WAYS / sizeof *WAYS; ++way) {
        sluice_outcome outcome;
        sluice_status status = WAYS[way].submit(client, &spec, bytes, length, &outcome);
        if (status != SLUICE_OK) {
            expect(of, WAYS[way].name, "error", sluice_status_text((int)status), "", 0);
            continue;
        }
        expect(of, WAYS[way].name, kind_word(outcome.kind), sluice_why_text((int)outcome.why),
               (const char *)outcome.bytes, outcome.length);
        must(sluice_outcome_free(&outcome), "give back");
    }
    if (spec.labels.id != 0) must(sluice_labels_free(spec.labels), "labels");
    free(bytes);
}

/* The process of a worker; 0 if none answers. */
static pid_t worker_id(sluice_client client) {
    sluice_spec spec;
    sluice_outcome outcome;
    char text[32] = {0};
    memset(&spec, 0, sizeof spec);
    spec.type = 14;
    must(sluice_submit(client, &spec, NULL, 0, text, sizeof text - 1, &outcome), "the worker's id");
    pid_t worker = outcome.kind == SLUICE_KIND_REPLY ? (pid_t)strtol(text, NULL, 10) : 0;
    must(sluice_outcome_free(&outcome), "give back");
    return worker;
}

/* Many tasks from one thread: it submits while there is room, and takes what has ended. */
static void burst(const struct test_case *of, sluice_client client) {
    enum { MOST = 64 };
    unsigned long count = number_of(&of->act, "count", 0), sent = 0, ended = 0, replies = 0;
    size_t length = number_of(&of->act, "fill", 0), taken;
    sluice_spec spec = spec_of(&of->act);
    pid_t dies = value_of(&of->act, "kill") ? worker_id(client) : 0;
    unsigned char *ends = (unsigned char *)calloc(count, 1);
    char *bytes = (char *)malloc(length + 1);
    sluice_queue queue;
    sluice_outcome outcomes[MOST];
    if (!ends || !bytes) die("no memory");
    if (value_of(&of->act, "kill") && dies == 0) die("%s: no worker says who it is", of->name);
    must(sluice_queue_new(&queue), "queue");
    while (ended < count) {
        while (sent < count) {
            task_of_burst(sent, bytes, length, 0);
            sluice_status status = sluice_queue_try_submit(client, queue, sent, &spec, bytes, length);
            if (status == SLUICE_BUSY) break;
            must(status, of->name);
            ++sent;
        }
        must(sluice_queue_wait(queue, outcomes, MOST, 1000000, &taken), "wait");
        for (size_t at = 0; at < taken; ++at) {
            sluice_outcome *outcome = &outcomes[at];
            if (outcome->tag >= count || ends[outcome->tag]++) die("%s: a task ended twice", of->name);
            task_of_burst((unsigned long)outcome->tag, bytes, length, 1);
            int is_right = outcome->length == length && memcmp(outcome->bytes, bytes, length) == 0;
            if (outcome->kind == SLUICE_KIND_FAILED || (outcome->kind == SLUICE_KIND_REPLY && !is_right)) {
                die("%s: a wrong reply", of->name);
            }
            replies += outcome->kind == SLUICE_KIND_REPLY;
            must(sluice_outcome_free(outcome), "give back");
        }
        ended += taken;
        if (dies != 0 && ended >= count / 3) {
            replace_worker(dies);
            dies = 0;
        }
    }
    if (replies < number_of(&of->expected, "replies_least", count)) die("%s: %lu replies", of->name, replies);
    must(sluice_queue_free(queue), "queue");
    free(bytes);
    free(ends);
}

/* A client of the rack that runs, all of whose workers serve by then. Its deadline is one that a busy machine meets. */
static sluice_client connect_client(void) {
    sluice_options options;
    sluice_client client;
    must(sluice_options_new(&options), "options");
    must(sluice_options_set(options, "controller", rack_of_cases.controller), "controller");
    must(sluice_options_set(options, "patience", "60s"), "patience");
    must(sluice_options_set(options, "deadline", "60s"), "deadline");
    must(sluice_client_connect(options, &client), "connect");
    must(sluice_options_free(options), "options");
    for (unsigned tries = 0; !all_have_answered(worker_id(client), tries); ++tries) continue;
    return client;
}

int main(int argc, char **argv) {
    if (argc != 4) die("usage: cases SLUICE CASES SERVICE");
    sluice_client client = {0};
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s/cases.txt", argv[2]);
    FILE *file = fopen(path, "r");
    unsigned done = 0;
    if (!file) die("there is no %s", path);
    for (struct test_case of; fgets(line, sizeof line, file);) {
        if (!parse_case(line, &of)) continue;
        if (strcmp(of.act.word, "rack") == 0) {
            if (client.id != 0) must(sluice_client_free(client), of.name);
            rack_end();
            start_rack(argv[1], argv[2], argv[3], &of.act);
            client = connect_client();
        } else if (strcmp(of.act.word, "submit") == 0) submit(&of, client);
        else if (strcmp(of.act.word, "burst") == 0) burst(&of, client);
        else if (strcmp(of.act.word, "close") == 0) must(sluice_client_close(client), of.name);
        else die("%s: %s is unknown", of.name, of.act.word);
        ++done;
    }
    fclose(file);
    must(sluice_client_free(client), "free");
    rack_end();
    printf("%u cases hold\n", done);
    return 0;
}
