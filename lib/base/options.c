/* Option structs of callers that were compiled with another version of the headers. */
#include "base/options.h"

#include <string.h>

#include "base/error.h"

spk_status spk_options_copy(void *out, size_t size, const void *options, spk_error *err)
{
    size_t given = 0;
    if (!options)
        return SPK_OK;
    memcpy(&given, options, sizeof given);
    if (given < sizeof given)
        return spk_error_set(err, SPK_E_INVALID, "options: the member \"size\" is not set");
    for (size_t i = size; i < given; i++)
        if (((const unsigned char *)options)[i] != 0)
            return spk_error_set(err, SPK_E_INVALID, "options: byte %zu is set, this library knows %zu", i, size);
    memcpy(out, options, given < size ? given : size);
    return SPK_OK;
}
