/* `cc` for builds that tests start: it keeps the objects that it makes of C, for C is most of a small build's time.
 *
 * In: a compiler's words as SCons writes them, in a project's folder or a release's. Objects lie beside this program,
 * which `conftest.py` makes for each run of tests; what an object is made of is in its name. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory is given back when the process ends, which is soon. */
static char *joined(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *joined(const char *format, ...) {
    char *made;
    va_list values;
    va_start(values, format);
    if (vasprintf(&made, format, values) < 0) abort();
    va_end(values);
    return made;
}

typedef struct {
    uint64_t one, two;
} digest;

static void add(digest *made, const char *data, size_t size) {
    for (size_t i = 0; i < size; i++) {
        made->one = (made->one ^ (unsigned char)data[i]) * 0x100000001b3u;
        made->two = (made->two + (unsigned char)data[i] + 1) * 0x9e3779b97f4a7c15u;
    }
}

/* One that is not there counts as well: its compilation fails. */
static void add_file(digest *made, const char *path) {
    char data[1 << 16];
    int file = open(path, O_RDONLY);
    add(made, path, strlen(path) + 1);
    for (ssize_t size; file >= 0 && (size = read(file, data, sizeof data)) > 0;) add(made, data, (size_t)size);
    if (file >= 0) close(file);
}

static int is_header(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return size > 2 && !strcmp(entry->d_name + size - 2, ".h");
}

static void add_headers(digest *made, const char *folder) {
    struct dirent **found;
    int count = scandir(folder, &found, is_header, alphasort);
    for (int i = 0; i < count; i++) add_file(made, joined("%s/%s", folder, found[i]->d_name));
}

static int copy(const char *from, const char *to) {
    char data[1 << 16];
    int in = open(from, O_RDONLY), out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0) return -1;
    for (ssize_t size; (size = read(in, data, sizeof data)) != 0;)
        if (size < 0 || write(out, data, (size_t)size) != size) return -1;
    close(in);
    return close(out);
}

static int compile(char **words) {
    words[0] = "cc";
    execvp("cc", words);
    perror("cc");
    _exit(127);
}

int main(int count, char **words) {
    const char *source = NULL, *out = NULL;
    int compiles = 0, tells = 0;
    digest made = {0xcbf29ce484222325u, 1};
    for (int i = 1; i < count; i++) {
        size_t size = strlen(words[i]);
        if (!strcmp(words[i - 1], "-o"))
            out = words[i]; /* where it goes is not what it is made of */
        else
            add(&made, words[i], size + 1);
        compiles |= !strcmp(words[i], "-c");
        tells |= !strcmp(words[i], "-MD");
        if (size > 2 && !strcmp(words[i] + size - 2, ".c")) source = words[i];
    }
    const char *inside = source ? strstr(source, "/src/") : NULL;
    if (tells || !compiles || !out || !inside) compile(words);
    const char *folder = joined("%.*s", (int)(inside - source), source), *end = strrchr(words[0], '/');
    add_file(&made, source);
    if (strstr(source, "/src/runtime/")) /* no header of the runtime is generated */
        add_file(&made, joined("%s/include/precast.h", folder));
    else
        add_headers(&made, joined("%s/include", folder));
    add_headers(&made, joined("%s/src/runtime", folder));
    const char *kept = joined("%.*s/%016llx%016llx.o", end ? (int)(end - words[0]) : 1, end ? words[0] : ".",
                              (unsigned long long)made.one, (unsigned long long)made.two);
    if (!copy(kept, out)) return 0;
    pid_t child = fork();
    if (child == 0) compile(words);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    const char *draft = joined("%s.%d", kept, (int)getpid());
    if (!copy(out, draft)) rename(draft, kept);
    return 0;
}
