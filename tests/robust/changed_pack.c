/* changed_pack FOLDER: while the driver is still busy with an image, its pack is overwritten in place. The driver must
 * get what was compared with the digest. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "small.h"

static char path[4096];

static void *overwrite(void *unused) {
    (void)unused;
    struct stat facts;
    usleep(300 * 1000);
    int file = open(path, O_WRONLY);
    fstat(file, &facts);
    void *zeros = calloc(1, (size_t)facts.st_size);
    if (pwrite(file, zeros, (size_t)facts.st_size, 0) != facts.st_size)
        exit(2);
    close(file);
    free(zeros);
    return NULL;
}

int main(int count, char **words) {
    static _Alignas(64) float x[64];
    pthread_t writer;
    small *release;
    if (count != 2 || small_open(words[1], &release))
        return 2;
    snprintf(path, sizeof path, "%s/targets/cuda-90/typed.pack", words[1]);
    fake_slow_loads(1000);
    pthread_create(&writer, NULL, overwrite, NULL);
    precast_status first = small_typed(release, NULL, (small_typed_axes){.dtype = PRECAST_FP16, .BLOCK = 64}, x, x, 64);
    pthread_join(writer, NULL);
    printf("%s", first ? small_error() : "");
    precast_status next = small_typed(release, NULL, (small_typed_axes){.dtype = PRECAST_FP32, .BLOCK = 64}, x, x, 64);
    small_close(release);
    return !(first == PRECAST_OK && next == PRECAST_DAMAGED);
}
