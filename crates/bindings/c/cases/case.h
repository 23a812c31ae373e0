/* The conformance cases as values, and the rack against which they run: for the runners in C and C++. A fault of
 * the run itself ends the program. */
#ifndef SLUICE_CASE_H
#define SLUICE_CASE_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VALUES_MAX 8
#define WORKERS_MAX 8

/* A value by its name, percent-decoded. */
struct value {
    const char *name;
    char *bytes;
    size_t length;
};

/* What is done or expected: a word, and values. */
struct step {
    const char *word;
    struct value values[VALUES_MAX];
    size_t count;
};

struct test_case {
    const char *name;
    struct step act;
    struct step expected;
};

/* A switch and its workers, as processes. */
struct rack {
    pid_t rack_switch;
    char controller[128];
    const char *service;
    pid_t workers[WORKERS_MAX];
    int has_answered[WORKERS_MAX];
    size_t count;
};

static struct rack rack_of_cases;

static void rack_end(void) {
    struct rack *rack = &rack_of_cases;
    for (size_t at = 0; at < rack->count; ++at) {
        kill(rack->workers[at], SIGKILL);
        waitpid(rack->workers[at], NULL, 0);
    }
    rack->count = 0;
    if (rack->rack_switch > 0) {
        kill(rack->rack_switch, SIGKILL);
        waitpid(rack->rack_switch, NULL, 0);
    }
    rack->rack_switch = 0;
}

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
static void die(const char *form, ...) {
    va_list all;
    va_start(all, form);
    vfprintf(stderr, form, all);
    va_end(all);
    fputc('\n', stderr);
    rack_end();
    exit(1);
}

static int digit(char c) {
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    if (!at) die("no hexadecimal digit: %c", c);
    return (int)(at - digits);
}

/* Decodes in place; returns the length. */
static size_t decode(char *text) {
    char *to = text;
    for (const char *from = text; *from; ++from) {
        if (*from == '%') {
            *to++ = (char)(digit(from[1]) * 16 + digit(from[2]));
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    return (size_t)(to - text);
}

static struct step parse_step(char *line) {
    struct step step;
    memset(&step, 0, sizeof step);
    char *left = NULL;
    step.word = strtok_r(line, " \r\n", &left);
    if (!step.word) die("a case says not what is done, or what is expected");
    for (char *word; (word = strtok_r(NULL, " \r\n", &left)) != NULL;) {
        char *is = strchr(word, '=');
        if (!is || step.count == VALUES_MAX) die("a word is no name=value: %s", word);
        *is = 0;
        struct value *value = &step.values[step.count++];
        value->name = word;
        value->bytes = is + 1;
        value->length = decode(is + 1);
    }
    return step;
}

/* Reads a line of the cases; returns 0 if it has none. The case points into the line. */
static int parse_case(char *line, struct test_case *of) {
    while (*line == ' ') ++line;
    if (*line == '#' || *line == '\n' || *line == '\r' || *line == 0) return 0;
    char *arrow = strstr(line, " -> ");
    if (!arrow || strncmp(line, "case ", 5) != 0) die("a line is no case: %s", line);
    *arrow = 0;
    char *left = NULL;
    of->name = strtok_r(line + 5, " ", &left);
    if (!of->name) die("a case has no name");
    of->act = parse_step(left);
    of->expected = parse_step(arrow + 4);
    return 1;
}

static const struct value *value_of(const struct step *step, const char *name) {
    for (size_t at = 0; at < step->count; ++at) {
        if (strcmp(step->values[at].name, name) == 0) return &step->values[at];
    }
    return NULL;
}

static unsigned long number_of(const struct step *step, const char *name, unsigned long if_none) {
    const struct value *value = value_of(step, name);
    if (!value) return if_none;
    char text[32] = {0};
    if (value->length >= sizeof text) die("%s is too long", name);
    memcpy(text, value->bytes, value->length);
    return strtoul(text, NULL, 10);
}

/* The bytes of the task of a `submit`. The caller frees them. */
static char *task_of(const struct step *act, size_t *length) {
    const struct value *text = value_of(act, "text");
    *length = text ? text->length : (size_t)number_of(act, "fill", 0);
    char *bytes = (char *)malloc(*length + 1);
    if (!bytes) die("no memory");
    if (text) memcpy(bytes, text->bytes, *length);
    else memset(bytes, 'x', *length);
    return bytes;
}

/* Writes the bytes of task `number` of a burst, or those of its reply. */
static void task_of_burst(unsigned long number, char *bytes, size_t length, int is_reply) {
    char digits[32];
    snprintf(digits, sizeof digits, "%08lu", number);
    for (size_t at = 0; at < length; ++at) bytes[is_reply ? length - 1 - at : at] = digits[at % 8];
}

/* Whether the outcome of a task is the one that is expected, in the words of the cases. `got` is reply, failed,
 * refused, unknown or error; `why` belongs to the latter three. */
static void expect(const struct test_case *of, const char *way, const char *got, const char *why,
                   const char *bytes, size_t length) {
    const struct step *expected = &of->expected;
    const struct value *text = value_of(expected, "text"), *has = value_of(expected, "has");
    const struct value *reason = value_of(expected, strcmp(got, "error") == 0 ? "is" : "why");
    int holds = strcmp(expected->word, got) == 0;
    holds = holds && (!text || (text->length == length && memcmp(text->bytes, bytes, length) == 0));
    holds = holds && number_of(expected, "bytes", (unsigned long)length) == length;
    holds = holds && (!reason || (strlen(why) == reason->length && strncmp(why, reason->bytes, reason->length) == 0));
    if (has) {
        int found = 0;
        for (size_t at = 0; at + has->length <= length && !found; ++at) {
            found = memcmp(bytes + at, has->bytes, has->length) == 0;
        }
        holds = holds && found;
    }
    if (!holds) {
        die("%s, %s: %s was expected, and this came: %s %s %.*s", of->name, way, expected->word, got, why,
            (int)(length < 100 ? length : 100), bytes);
    }
}

static pid_t start(char *const *args, int out) {
    pid_t child = fork();
    if (child < 0) die("no process can be started");
    if (child == 0) {
        if (out >= 0) dup2(out, 1);
        execv(args[0], args);
        _exit(127);
    }
    return child;
}

static void start_worker(void) {
    struct rack *rack = &rack_of_cases;
    char *args[] = {(char *)rack->service, (char *)"--controller", rack->controller, (char *)"--quiet", NULL};
    if (rack->count == WORKERS_MAX) die("there are too many workers");
    rack->has_answered[rack->count] = 0;
    rack->workers[rack->count++] = start(args, -1);
}

/* Notes that a worker has answered. Returns whether all have; if not, it waits a little before the next try,
 * and gives up after some minutes. */
static int all_have_answered(pid_t worker, unsigned tries) {
    struct rack *rack = &rack_of_cases;
    const struct timespec a_little = {0, 5000000};
    int all = 1;
    for (size_t at = 0; at < rack->count; ++at) {
        if (rack->workers[at] == worker) rack->has_answered[at] = 1;
        all = all && rack->has_answered[at];
    }
    if (!all && tries > 30000) die("not all workers serve");
    if (!all) nanosleep(&a_little, NULL);
    return all;
}

/* Starts the switch, with the faults of this step, and two workers. The switch's first line says where its controller
 * is. It keeps its state in a folder of this run, below the one where the runner was started. */
static void start_rack(const char *sluice, const char *cases, const char *service, const struct step *act) {
    static unsigned starts;
    struct rack *rack = &rack_of_cases;
    const struct value *given = value_of(act, "faults");
    char plan[4096], state[64], faults[256] = {0};
    rack->service = service;
    snprintf(plan, sizeof plan, "%s/rack.toml", cases);
    snprintf(state, sizeof state, "state-%ld-%u", (long)getpid(), ++starts);
    if (given) snprintf(faults, sizeof faults, "%.*s", (int)given->length, given->bytes);
    const char *args[] = {sluice,     "switch",      plan,        "--json",      "--quiet", "--state",
                          state,      "--listen",    "127.0.0.1:0", "--control", "127.0.0.1:0",
                          "--faults", faults,        NULL};
    int ends[2];
    if (pipe(ends) != 0) die("no pipe");
    rack->rack_switch = start((char *const *)args, ends[1]);
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    char line[1024] = {0};
    if (!said || !fgets(line, sizeof line, said)) die("the switch does not say where it is");
    const char *at = strstr(line, "\"control\":\"");
    const char *end = at ? strchr(at + 11, '"') : NULL;
    if (!end || (size_t)(end - at) > sizeof rack->controller) die("the switch says something else: %s", line);
    memcpy(rack->controller, at + 11, (size_t)(end - at - 11));
    fclose(said);
    start_worker();
    start_worker();
}

/* Kills a worker, and starts another one in its place. */
static void replace_worker(pid_t worker) {
    struct rack *rack = &rack_of_cases;
    for (size_t at = 0; at < rack->count; ++at) {
        if (rack->workers[at] != worker) continue;
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
        rack->workers[at] = rack->workers[--rack->count];
        start_worker();
        return;
    }
    die("%d is no worker of this rack", (int)worker);
}

#endif
