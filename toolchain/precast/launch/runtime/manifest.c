/* manifest.json beside the index: whole, and of the same release. It is text of one form, so that no JSON is read here:
 * sorted keys, a line for each, and first the digest of all the rest without its spaces and line ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"
#include "state.h"

enum { DIGITS = 64 };

/* Adds text without what stands between its strings and numbers. */
static void add_compact(precast_sha256 *hash, const unsigned char *text, const unsigned char *end) {
    const unsigned char *start = text;
    int quoted = 0;
    for (; text < end; text++) {
        if (quoted && *text == '\\') {
            text++;
        } else if (*text == '"') {
            quoted = !quoted;
        } else if (!quoted && (*text == ' ' || *text == '\n')) {
            precast_sha256_add(hash, start, (size_t)(text - start));
            start = text + 1;
        }
    }
    if (start < end)
        precast_sha256_add(hash, start, (size_t)(end - start));
}

static int is_whole(const precast_view *manifest) {
    static const char before[] = "{\n \"content\": \"", after[] = "\",\n";
    const size_t first = sizeof before - 1, rest = first + DIGITS + sizeof after - 1;
    unsigned char digest[32];
    char text[DIGITS + 1];
    precast_sha256 hash;
    if (manifest->size < rest || memcmp(manifest->data, before, first) ||
        memcmp(manifest->data + first + DIGITS, after, sizeof after - 1))
        return 0;
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, manifest->data, 1);
    add_compact(&hash, manifest->data + rest, manifest->data + manifest->size);
    precast_sha256_finish(&hash, digest);
    precast_hex(digest, text);
    return !memcmp(manifest->data + first, text, DIGITS);
}

/* The digest that the manifest lists for index.bin, in hexadecimal; NULL when it lists none. */
static const char *find_listed(const precast_view *manifest) {
    static const char before[] = "\n   \"digest\": \"", after[] = "\",\n   \"path\": \"index.bin\",\n";
    const char *data = (const char *)manifest->data;
    const char *end = memmem(data, manifest->size, after, sizeof after - 1);
    if (!end || (size_t)(end - data) < DIGITS + sizeof before - 1)
        return NULL;
    const char *start = end - DIGITS;
    return memcmp(start - (sizeof before - 1), before, sizeof before - 1) ? NULL : start;
}

static void hash_index(const precast_index *index, char text[DIGITS + 1]) {
    unsigned char digest[32];
    precast_sha256 hash;
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, index->view.data, index->view.size);
    precast_sha256_finish(&hash, digest);
    precast_hex(digest, text);
}

int precast_manifest_names(const precast_view *manifest, const precast_index *index) {
    const char *listed = find_listed(manifest);
    char digest[DIGITS + 1];
    hash_index(index, digest);
    return listed && !memcmp(listed, digest, DIGITS);
}

int precast_manifest_text(const precast_view *manifest, const char *member, char *text, size_t capacity) {
    char before[64];
    int length = snprintf(before, sizeof before, "\n \"%s\": \"", member);
    const char *data = (const char *)manifest->data, *end = data + manifest->size;
    const char *start = memmem(data, manifest->size, before, (size_t)length);
    if (!start)
        return 0;
    start += length;
    const char *quote = memchr(start, '"', (size_t)(end - start));
    size_t size = quote ? (size_t)(quote - start) : capacity;
    if (size >= capacity || memchr(start, '\\', size) || memchr(start, 0, size))
        return 0;
    memcpy(text, start, size);
    text[size] = 0;
    return 1;
}

precast_status precast_check_whole(const char *folder, const precast_index *index, const precast_view *manifest) {
    const char *listed = find_listed(manifest);
    char digest[DIGITS + 1];
    if (!is_whole(manifest))
        return precast_fail(PRECAST_DAMAGED, "%s/manifest.json does not match its own digest", folder);
    if (!listed)
        return precast_fail(PRECAST_MISMATCH, "%s/manifest.json lists no index.bin", folder);
    hash_index(index, digest);
    if (memcmp(listed, digest, DIGITS))
        return precast_fail(PRECAST_MISMATCH, "%s/manifest.json lists index.bin with digest %.12s, the one beside it has "
                            "digest %.12s", folder, listed, digest);
    return PRECAST_OK;
}

precast_status precast_read_manifest(const char *folder, precast_view *manifest) {
    char *path = precast_join(folder, "manifest.json");
    if (!path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    precast_status status = precast_read_file(path, PRECAST_MOST_INDEX_BYTES, manifest);
    free(path);
    return status;
}

precast_status precast_check_manifest(const char *folder, const precast_index *index) {
    precast_view manifest = {NULL, 0};
    precast_status status = precast_read_manifest(folder, &manifest);
    if (status == PRECAST_OK)
        status = precast_check_whole(folder, index, &manifest);
    precast_drop_view(&manifest);
    return status;
}
