/* A program that loads the library at run time, and unloads it with a client open: unload LIBRARY CONTROLLER. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sluice.h>

/* A function of the library. ISO C has no conversion from an object's pointer to a function's. */
#define FIND(library, function) \
    do { \
        void *found = dlsym(library, "sluice_" #function); \
        if (!found) return 1; \
        memcpy(&function, &found, sizeof found); \
    } while (0)

int main(int argc, char **argv) {
    sluice_status (*options_new_of)(uint32_t, sluice_options *);
    sluice_status (*options_set)(sluice_options, const char *, const char *);
    sluice_status (*client_connect)(sluice_options, sluice_client *);
    const char *(*last_error)(void);
    sluice_options options;
    sluice_client client;
    struct timespec while_its_threads_run = {0, 300000000};
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return 2;
    FIND(library, options_new_of);
    FIND(library, options_set);
    FIND(library, client_connect);
    FIND(library, last_error);
    if (options_new_of(SLUICE_ABI, &options) != SLUICE_OK || options_set(options, "controller", argv[2]) != SLUICE_OK
        || options_set(options, "patience", "60s") != SLUICE_OK || client_connect(options, &client) != SLUICE_OK) {
        fprintf(stderr, "%s\n", last_error());
        return 1;
    }
    if (dlclose(library) != 0) return 1;
    nanosleep(&while_its_threads_run, NULL);
    printf("well\n");
    return 0;
}
