/* Whether the libclang that is named can be opened and reads a header that it must bring itself, as bindgen has it do. */
#include <dlfcn.h>
#include <stdio.h>

typedef void *(*create_index)(int, int);
typedef void *(*parse)(void *, const char *, const char *const *, int, void *, unsigned, unsigned);
typedef unsigned (*count)(void *);

struct unsaved_file {
    const char *name, *text;
    unsigned long length;
};

int main(int argc, char **argv)
{
    static const char text[] = "#include <stddef.h>\n#include <stdarg.h>\n#include <stdint.h>\nsize_t it;\n";
    struct unsaved_file file = { "try.h", text, sizeof text - 1 };
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "name a libclang");
        return 1;
    }
    create_index index = (create_index)dlsym(library, "clang_createIndex");
    parse parsed = (parse)dlsym(library, "clang_parseTranslationUnit");
    count diagnostics = (count)dlsym(library, "clang_getNumDiagnostics");
    if (!index || !parsed || !diagnostics) {
        fprintf(stderr, "%s is no libclang\n", argv[1]);
        return 1;
    }
    void *unit = parsed(index(0, 1), "try.h", NULL, 0, &file, 1, 0);
    if (!unit || diagnostics(unit) > 0) {
        fprintf(stderr, "%s cannot read headers: its own (libclang-common-dev) or the C library's are missing\n", argv[1]);
        return 1;
    }
    return 0;
}
