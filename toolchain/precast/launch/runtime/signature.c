/* The manifest's ed25519 signature, checked with the system's libcrypto: opened only when a key is asked for. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { ED25519 = 1087, SIGNATURE_BYTES = 64 }; /* EVP_PKEY_ED25519 */

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

/* The signature file holds 128 hexadecimal digits and the end of a line. */
static int parse_signature(const precast_view *text, unsigned char signature[SIGNATURE_BYTES]) {
    if (text->size < 2 * SIGNATURE_BYTES)
        return 0;
    for (int i = 0; i < SIGNATURE_BYTES; i++) {
        int high = digit(text->data[2 * i]), low = digit(text->data[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        signature[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

static int verify(const crypto *with, const unsigned char key[32], const precast_view *signature_text,
                  const precast_view *manifest) {
    unsigned char signature[SIGNATURE_BYTES];
    void *public_key = with->new_key(ED25519, NULL, key, 32);
    void *context = with->new_context();
    int good = public_key && context && parse_signature(signature_text, signature) &&
               with->start(context, NULL, NULL, NULL, public_key) == 1 &&
               with->verify(context, signature, SIGNATURE_BYTES, manifest->data, manifest->size) == 1;
    with->free_context(context);
    with->free_key(public_key);
    return good;
}

static precast_status check(const char *folder, const precast_index *index, const unsigned char key[32],
                            const precast_view *manifest, const precast_view *signature) {
    crypto with;
    if (!open_crypto(&with))
        return precast_fail(PRECAST_UNTRUSTED, "a signature is required, and there is no libcrypto to check it with");
    int good = verify(&with, key, signature, manifest);
    dlclose(with.library);
    if (!good)
        return precast_fail(PRECAST_UNTRUSTED, "%s/manifest.json is not signed by the key that is required", folder);
    if (!precast_manifest_names(manifest, index))
        return precast_fail(PRECAST_UNTRUSTED, "%s/index.bin is not the one that the signed manifest.json names", folder);
    return PRECAST_OK;
}

precast_status precast_check_signature(const char *folder, const precast_index *index, const unsigned char key[32]) {
    precast_view manifest = {NULL, 0}, signature = {NULL, 0};
    char *manifest_path = precast_join(folder, "manifest.json");
    char *signature_path = precast_join(folder, "manifest.json.sig");
    precast_status status = PRECAST_OUT_OF_MEMORY;
    if (!manifest_path || !signature_path)
        precast_fail(status, "there is no memory for a path");
    else if (precast_map_file(manifest_path, &manifest) || precast_map_file(signature_path, &signature))
        status = precast_fail(PRECAST_UNTRUSTED, "a signature is required, and %s is not signed", folder);
    else
        status = check(folder, index, key, &manifest, &signature);
    precast_unmap_file(&manifest);
    precast_unmap_file(&signature);
    free(manifest_path);
    free(signature_path);
    return status;
}
