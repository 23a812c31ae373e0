/* A whole client: has a word reversed by whoever serves type 9. reverse_client CONTROLLER WORD */
#include <stdio.h>
#include <string.h>

#include <sluice.h>

static int failed(void) {
    fprintf(stderr, "%s\n", sluice_last_error());
    return 1;
}

int main(int argc, char **argv) {
    sluice_options options;
    sluice_client client;
    sluice_spec spec = {0};
    sluice_outcome outcome;
    int code = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: reverse_client CONTROLLER WORD\n");
        return 2;
    }
    if (sluice_options_new(&options)) return failed();
    if (sluice_options_set(options, "controller", argv[1])) return failed();
    if (sluice_client_connect(options, &client)) return failed();

    spec.type = 9;
    if (sluice_submit(client, &spec, argv[2], strlen(argv[2]), NULL, 0, &outcome)) return failed();
    if (outcome.kind == SLUICE_KIND_REPLY) {
        printf("%.*s\n", (int)outcome.length, (const char *)outcome.bytes);
    } else {
        char line[256];
        sluice_outcome_text(&outcome, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        code = 1;
    }
    sluice_outcome_free(&outcome);

    if (sluice_client_close(client)) return failed();
    sluice_client_free(client);
    sluice_options_free(options);
    return code;
}
