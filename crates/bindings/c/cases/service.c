/* The conformance service in C; README.md of ../cases says what each type does. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

static unsigned long number(const sluice_task *task) {
    char digits[16] = {0};
    memcpy(digits, task->bytes, task->length < sizeof digits - 1 ? task->length : sizeof digits - 1);
    return strtoul(digits, NULL, 10);
}

static int reverse(void *context, const sluice_task *task, sluice_reply reply) {
    static uint8_t reversed[SLUICE_BYTES_MAX];
    (void)context;
    for (size_t at = 0; at < task->length; ++at) reversed[at] = task->bytes[task->length - 1 - at];
    return sluice_reply_write(reply, reversed, task->length);
}

static int fail(void *context, const sluice_task *task, sluice_reply reply) {
    char text[256];
    (void)context;
    snprintf(text, sizeof text, "told to fail: %.*s", (int)task->length, (const char *)task->bytes);
    return sluice_reply_fail(reply, text);
}

static int sleep_ms(void *context, const sluice_task *task, sluice_reply reply) {
    unsigned long ms = number(task);
    struct timespec span = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)context;
    nanosleep(&span, NULL);
    return sluice_reply_write(reply, "slept", 5);
}

static int long_reply(void *context, const sluice_task *task, sluice_reply reply) {
    (void)context;
    for (unsigned long left = number(task); left > 0; --left) sluice_reply_write(reply, "x", 1);
    return 0;
}

static int panic(void *context, const sluice_task *task, sluice_reply reply) {
    (void)context;
    (void)task;
    (void)reply;
    return 7;
}

static int pid(void *context, const sluice_task *task, sluice_reply reply) {
    char text[32];
    (void)context;
    (void)task;
    int length = snprintf(text, sizeof text, "%ld", (long)getpid());
    return sluice_reply_write(reply, text, (size_t)length);
}

int main(int argc, char **argv) {
    const sluice_service services[] = {
        {9, reverse, NULL},     {10, fail, NULL},  {11, sleep_ms, NULL},
        {12, long_reply, NULL}, {13, panic, NULL}, {14, pid, NULL},
    };
    return sluice_run_service(argc, argv, services, sizeof services / sizeof *services);
}
