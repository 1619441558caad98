/* Control groups, version 2 and version 1: a container's share of its machine is there, not in the affinity.
 *
 * A process that sees its container's hierarchy as the root finds no folder of the group's name below it; then the root's
 * own files count, which are the container's. */
#include "quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

static int read_line(const char *folder, const char *file, char *line, int bytes) {
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return 0;
    int read = fgets(line, bytes, stream) != NULL;
    fclose(stream);
    return read;
}

static int processors_of(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return 0;
    long long count = quota / period + (quota % period != 0);
    return count > 1 << 20 ? 1 << 20 : (int)count;
}

/* `max 100000` or `150000 100000`, in microseconds; version 1 has two files, and -1 for none. */
static int quota_in(const char *folder) {
    char line[128], *end;
    if (read_line(folder, "cpu.max", line, sizeof line)) {
        long long quota = strtoll(line, &end, 10);
        return end == line ? 0 : processors_of(quota, strtoll(end, NULL, 10));
    }
    if (!read_line(folder, "cpu.cfs_quota_us", line, sizeof line))
        return 0;
    long long quota = strtoll(line, NULL, 10);
    return read_line(folder, "cpu.cfs_period_us", line, sizeof line) ? processors_of(quota, strtoll(line, NULL, 10)) : 0;
}

/* The smallest quota from a group up to the root of its hierarchy. */
static int smallest(const char *root, char *group) {
    char folder[PATH_BYTES];
    int least = 0;
    for (;;) {
        if (snprintf(folder, sizeof folder, "%s%s", root, group) < (int)sizeof folder) {
            int quota = quota_in(folder);
            least = quota && (!least || quota < least) ? quota : least;
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

static int names_processor_time(const char *controllers) {
    for (const char *word = controllers; *word; word += strcspn(word, ","), word += *word == ',')
        if (!strncmp(word, "cpu", 3) && (word[3] == ',' || !word[3]))
            return 1;
    return 0;
}

/* A line is `number:controllers:group`; version 2 has no controllers there and number 0. */
int precast_quota(const char *groups, const char *root) {
    char line[LINE_BYTES], place[PATH_BYTES];
    int least = 0;
    FILE *stream = fopen(groups, "re");
    while (stream && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = '\0', *group++ = '\0';
        if (*controllers && !names_processor_time(controllers))
            continue;
        if (snprintf(place, sizeof place, "%s%s%s", root, *controllers ? "/" : "", controllers) >= (int)sizeof place)
            continue;
        int quota = smallest(place, group);
        least = quota && (!least || quota < least) ? quota : least;
    }
    if (stream)
        fclose(stream);
    return least;
}
