/* One pass over JSON text that counts brackets and commas outside strings. Pure. */
#include "dataset/json_guard.h"

#include "base/error.h"

/* Position behind the string whose opening quote is at i; n if it does not end. */
static size_t skip_string(const char *text, size_t n, size_t i)
{
    for (i++; i < n && text[i] != '"'; i++)
        if (text[i] == '\\')
            i++;
    return i < n ? i + 1 : n;
}

spk_status spk_json_guard(const char *text, size_t n, spk_error *err)
{
    size_t depth = 0, containers = 0, values = 0;

    for (size_t i = 0; i < n;) {
        switch (text[i]) {
        case '"':
            i = skip_string(text, n, i);
            continue;
        case '[':
        case '{':
            containers++;
            values++;
            if (++depth > SPK_JSON_DEPTH_MAX)
                return spk_error_at(err, SPK_E_LIMIT, i, "JSON nested deeper than %u levels at byte %zu",
                                    SPK_JSON_DEPTH_MAX, i);
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            break;
        case ',':
            values++;
            break;
        default:
            break;
        }
        if (containers > SPK_JSON_CONTAINERS_MAX)
            return spk_error_at(err, SPK_E_LIMIT, i, "more than %u JSON arrays and objects at byte %zu",
                                SPK_JSON_CONTAINERS_MAX, i);
        if (values > SPK_JSON_VALUES_MAX)
            return spk_error_at(err, SPK_E_LIMIT, i, "more than %u JSON values at byte %zu", SPK_JSON_VALUES_MAX, i);
        i++;
    }
    return SPK_OK;
}
