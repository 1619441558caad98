/* SHA-256 (FIPS 180-4). */
#ifndef PRECAST_SHA256_H
#define PRECAST_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct precast_sha256 {
    uint32_t state[8];
    uint64_t length;
    unsigned char block[64];
} precast_sha256;

void precast_sha256_start(precast_sha256 *hash);
void precast_sha256_add(precast_sha256 *hash, const void *data, size_t size);
void precast_sha256_finish(precast_sha256 *hash, unsigned char digest[32]);

/* Writes the digest as 64 hexadecimal digits and a NUL. */
void precast_hex(const unsigned char digest[32], char text[65]);

#endif
