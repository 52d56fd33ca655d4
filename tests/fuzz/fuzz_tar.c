/* Tar headers: whatever is accepted must be what writing gives. */
#include <stdlib.h>
#include <string.h>

#include "shard/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t block[SPK_TAR_BLOCK] = {0}, again[SPK_TAR_BLOCK];
    spk_tar_entry e;
    spk_error err;
    memcpy(block, data, n < sizeof block ? n : sizeof block);
    /* The sum is repaired every other time, since a random one never fits. */
    if (n > sizeof block && (data[sizeof block] & 1)) {
        unsigned sum = 8 * ' ';
        for (unsigned i = 0; i < SPK_TAR_BLOCK; i++)
            sum += i < 148 || i >= 156 ? block[i] : 0;
        for (unsigned i = 6; i-- > 0; sum >>= 3)
            block[148 + i] = (uint8_t)('0' + (sum & 7));
        block[154] = '\0';
        block[155] = ' ';
    }
    if (spk_tar_parse(block, &e, &err) != SPK_OK)
        return 0;
    char *dot = strchr(e.name, '.');
    *dot = '\0';
    if (spk_tar_header(again, e.name, dot + 1, e.size, &err) != SPK_OK || memcmp(again, block, sizeof block) != 0)
        abort();
    return 0;
}
