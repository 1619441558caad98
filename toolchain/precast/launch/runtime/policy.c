/* What was demanded of a release: by whom it is signed, what it is called, how old it may be. All of it is answered
 * from one reading of manifest.json. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { KEY_BYTES = 32, MOST_RING_BYTES = 1 << 20, MOST_TEXT = 256 };

/* Keys in one piece, to be freed. */
typedef struct keys {
    unsigned char *bytes;
    size_t count;
} keys;

static precast_status add_key(keys *all, const unsigned char key[KEY_BYTES]) {
    unsigned char *bytes = realloc(all->bytes, (all->count + 1) * KEY_BYTES);
    if (!bytes)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for keys");
    all->bytes = bytes;
    memcpy(bytes + all->count++ * KEY_BYTES, key, KEY_BYTES);
    return PRECAST_OK;
}

/* A line of a key ring: nothing, `# …`, or 64 hexadecimal digits and, after a space, whatever. */
static precast_status read_line(const char *path, unsigned number, const unsigned char *line, size_t length, keys *all) {
    unsigned char key[KEY_BYTES];
    if (!length || line[0] == '#')
        return PRECAST_OK;
    if (length < 2 * KEY_BYTES || !precast_parse_hex(line, KEY_BYTES, key) ||
        (length > 2 * KEY_BYTES && line[2 * KEY_BYTES] != ' '))
        return precast_fail(PRECAST_UNTRUSTED, "%s:%u: this is no public key of 64 hexadecimal digits", path, number);
    return add_key(all, key);
}

static precast_status read_ring(const char *path, keys *all) {
    precast_view ring = {NULL, 0};
    if (precast_read_file(path, MOST_RING_BYTES, &ring) != PRECAST_OK)
        return PRECAST_UNTRUSTED;
    precast_status status = PRECAST_OK;
    unsigned number = 1;
    for (size_t start = 0; start < ring.size && status == PRECAST_OK; number++) {
        const unsigned char *end = memchr(ring.data + start, '\n', ring.size - start);
        size_t length = end ? (size_t)(end - ring.data) - start : ring.size - start;
        status = read_line(path, number, ring.data + start, length, all);
        start += length + 1;
    }
    precast_drop_view(&ring);
    return status;
}

static precast_status check_signed(const char *folder, const precast_index *index, const precast_policy *policy,
                                   const precast_view *manifest) {
    keys all = {NULL, 0};
    precast_status status = policy->key_ring ? read_ring(policy->key_ring, &all) : PRECAST_OK;
    for (size_t i = 0; policy->keys && i < policy->key_count && status == PRECAST_OK; i++)
        status = add_key(&all, policy->keys + i * KEY_BYTES);
    if (status == PRECAST_OK && !all.count)
        status = precast_fail(PRECAST_UNTRUSTED, "a signature is required, and there is no key to check it with");
    if (status == PRECAST_OK)
        status = precast_verify_manifest(folder, manifest, all.bytes, all.count);
    free(all.bytes);
    if (status == PRECAST_OK && !precast_manifest_names(manifest, index))
        return precast_fail(PRECAST_UNTRUSTED, "%s/index.bin is not the one that the signed manifest.json names", folder);
    return status;
}

static precast_status check_name(const char *folder, const char *wanted, const precast_view *manifest) {
    char name[MOST_TEXT];
    if (precast_manifest_text(manifest, "name", name, sizeof name) && !strcmp(name, wanted))
        return PRECAST_OK;
    return precast_fail(PRECAST_UNTRUSTED, "%s is not a release of `%s`, which is required", folder, wanted);
}

static precast_status check_version(const char *folder, const char *minimum, const precast_view *manifest) {
    char version[MOST_TEXT];
    if (!precast_is_minimum(minimum))
        return precast_fail(PRECAST_BAD_ARGUMENT, "`%s` is no minimum version: numbers with dots between them", minimum);
    if (!precast_manifest_text(manifest, "project_version", version, sizeof version))
        return precast_fail(PRECAST_UNTRUSTED, "%s/manifest.json tells no version, and at least %s is required", folder,
                            minimum);
    if (!precast_is_at_least(version, minimum))
        return precast_fail(PRECAST_UNTRUSTED, "%s has version %s, and at least %s is required", folder, version,
                            minimum);
    return PRECAST_OK;
}

int precast_demands_signature(const precast_policy *policy) {
    return policy->keys || policy->key_count || policy->key_ring;
}

precast_status precast_check_policy(const char *folder, const precast_index *index, const precast_policy *policy) {
    precast_view manifest = {NULL, 0};
    precast_status status = precast_read_manifest(folder, &manifest);
    if (status != PRECAST_OK && precast_demands_signature(policy))
        status = precast_fail(PRECAST_UNTRUSTED, "a signature is required, and %s is not signed", folder);
    else if (status == PRECAST_OK)
        status = precast_demands_signature(policy) ? check_signed(folder, index, policy, &manifest)
                                                   : precast_check_whole(folder, index, &manifest);
    if (status == PRECAST_OK && policy->name)
        status = check_name(folder, policy->name, &manifest);
    if (status == PRECAST_OK && policy->minimum_version)
        status = check_version(folder, policy->minimum_version, &manifest);
    precast_drop_view(&manifest);
    return status;
}

precast_status precast_check_signature(const char *folder, const precast_index *index, const unsigned char key[32]) {
    const precast_policy policy = {.keys = key, .key_count = 1};
    return precast_check_policy(folder, index, &policy);
}
