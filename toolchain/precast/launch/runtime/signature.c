/* The manifest's ed25519 signature, checked with the system's libcrypto: opened only when a key is asked for. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { ED25519 = 1087, SIGNATURE_BYTES = 64, MOST_SIGNATURE_FILE = 4096 }; /* EVP_PKEY_ED25519 */

typedef struct crypto {
    void *library;
    void *(*new_key)(int type, void *engine, const unsigned char *key, size_t length);
    void (*free_key)(void *key);
    void *(*new_context)(void);
    void (*free_context)(void *context);
    int (*start)(void *context, void **key_context, const void *digest, void *engine, void *key);
    int (*verify)(void *context, const unsigned char *signature, size_t length, const unsigned char *data, size_t size);
} crypto;

static int open_crypto(crypto *found) {
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"};
    const struct { const char *name; void *place; } symbols[] = {
        {"EVP_PKEY_new_raw_public_key", &found->new_key}, {"EVP_PKEY_free", &found->free_key},
        {"EVP_MD_CTX_new", &found->new_context},          {"EVP_MD_CTX_free", &found->free_context},
        {"EVP_DigestVerifyInit", &found->start},          {"EVP_DigestVerify", &found->verify},
    };
    found->library = NULL;
    for (int i = 0; i < 3 && !found->library; i++)
        found->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; found->library && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(found->library, symbols[i].name);
        if (!symbol) {
            dlclose(found->library);
            found->library = NULL;
            break;
        }
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return found->library != NULL;
}

static int digit(unsigned char sign) {
    return sign >= '0' && sign <= '9' ? sign - '0' : sign >= 'a' && sign <= 'f' ? sign - 'a' + 10 : -1;
}

int precast_parse_hex(const unsigned char *text, size_t bytes, unsigned char *data) {
    for (size_t i = 0; i < bytes; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        data[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

/* The signature file holds 128 small hexadecimal digits and the end of a line, and nothing else. */
static int parse_signature(const precast_view *text, unsigned char signature[SIGNATURE_BYTES]) {
    return text->size == 2 * SIGNATURE_BYTES + 1 && text->data[2 * SIGNATURE_BYTES] == '\n' &&
           precast_parse_hex(text->data, SIGNATURE_BYTES, signature);
}

static int verify(const crypto *with, const unsigned char key[32], const unsigned char signature[SIGNATURE_BYTES],
                  const precast_view *manifest) {
    void *public_key = with->new_key(ED25519, NULL, key, 32);
    void *context = with->new_context();
    int good = public_key && context && with->start(context, NULL, NULL, NULL, public_key) == 1 &&
               with->verify(context, signature, SIGNATURE_BYTES, manifest->data, manifest->size) == 1;
    with->free_context(context);
    with->free_key(public_key);
    return good;
}

static precast_status verify_any(const char *folder, const precast_view *manifest, const unsigned char *keys,
                                 size_t count, const precast_view *text) {
    unsigned char signature[SIGNATURE_BYTES];
    crypto with;
    if (!open_crypto(&with))
        return precast_fail(PRECAST_UNTRUSTED, "a signature is required, and there is no libcrypto to check it with");
    int good = 0, parsed = parse_signature(text, signature);
    for (size_t i = 0; i < count && parsed && !good; i++)
        good = verify(&with, keys + 32 * i, signature, manifest);
    dlclose(with.library);
    if (good)
        return PRECAST_OK;
    return precast_fail(PRECAST_UNTRUSTED, "%s/manifest.json is not signed by %s", folder,
                        count == 1 ? "the key that is required" : "any of the keys that are allowed");
}

precast_status precast_verify_manifest(const char *folder, const precast_view *manifest, const unsigned char *keys,
                                       size_t count) {
    precast_view signature = {NULL, 0};
    char *path = precast_join(folder, "manifest.json.sig");
    if (!path)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a path");
    precast_status status = precast_read_file(path, MOST_SIGNATURE_FILE, &signature);
    status = status == PRECAST_OK
                 ? verify_any(folder, manifest, keys, count, &signature)
                 : precast_fail(PRECAST_UNTRUSTED, "a signature is required, and %s is not signed", folder);
    precast_drop_view(&signature);
    free(path);
    return status;
}
