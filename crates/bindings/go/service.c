// The frame between the library's callback and Go: file scope C is not allowed where Go exports functions.

#include <sluice.h>
#include <stdlib.h>

#include "_cgo_export.h"

static int serve(void *handlers, const sluice_task *task, sluice_reply reply) {
  return sluiceGoServe((uintptr_t)handlers, (sluice_task *)task, reply);
}

int sluice_go_run(int argc, char **argv, const uint16_t *types, size_t count, uintptr_t handlers) {
  sluice_service *services = calloc(count, sizeof *services);
  if (services == NULL) return 1;
  for (size_t i = 0; i < count; i++) {
    services[i] = (sluice_service){.type = types[i], .serve = serve, .context = (void *)handlers};
  }
  int code = sluice_run_service_told(argc, argv, services, count);
  free(services);
  return code;
}
