/* A whole service: answers each task of type 9 with its bytes in reverse. reverse_service --controller ADDRESS */
#include <sluice.h>

static int reverse(void *context, const sluice_task *task, sluice_reply reply) {
    static uint8_t reversed[SLUICE_BYTES_MAX]; /* one thread calls this */
    (void)context;
    for (size_t at = 0; at < task->length; ++at) reversed[at] = task->bytes[task->length - 1 - at];
    return sluice_reply_write(reply, reversed, task->length);
}

int main(int argc, char **argv) {
    const sluice_service service = {9, reverse, NULL};
    return sluice_run_service(argc, argv, &service, 1);
}
