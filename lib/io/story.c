/* What was tried, as text: each mirror, attempts, what came back, bytes. */
#include <stdio.h>
#include <string.h>

#include "io/net_impl.h"

static const char *const fault_names[SPK_FAULTS] = {
    [SPK_FAULT_CONNECT] = "no connection",   [SPK_FAULT_BROKEN] = "broken",   [SPK_FAULT_STALL] = "stalled",
    [SPK_FAULT_DENIED] = "denied",           [SPK_FAULT_MISSING] = "missing", [SPK_FAULT_THROTTLE] = "throttled",
    [SPK_FAULT_SERVER] = "server error",     [SPK_FAULT_REPLY] = "bad reply", [SPK_FAULT_CHANGED] = "changed",
    [SPK_FAULT_DIGEST] = "SHA-256 mismatch",
};

static spk_status tell_one(spk_buf *text, const char *name, const spk_tries *t, spk_error *err)
{
    if (t->attempts == 0)
        return spk_buf_printf(text, err, "; %s: not asked", name);
    SPK_TRY(spk_buf_printf(text, err, "; %s: %u attempt%s", name, t->attempts, t->attempts == 1 ? "" : "s"));
    for (int f = 1; f < SPK_FAULTS; f++)
        if (t->faults[f])
            SPK_TRY(spk_buf_printf(text, err, ", %s x%u", fault_names[f], t->faults[f]));
    if (t->last[0])
        SPK_TRY(spk_buf_printf(text, err, " (last: %s)", t->last));
    return spk_buf_printf(text, err, ", %llu bytes", (unsigned long long)t->bytes);
}

void spk_story_under_way(spk_tries *t, const spk_transfer *x, uint64_t now)
{
    size_t n = strlen(t->last);
    const char *then = n ? "; then " : "";
    double seconds = (double)(now - x->started_ns) / 1e9;
    t->bytes += x->have;
    if (x->have > 0)
        snprintf(t->last + n, sizeof t->last - n, "%sonly %zu bytes in %.1f s", then, x->have, seconds);
    else
        snprintf(t->last + n, sizeof t->last - n, "%sno reply for %.1f s", then, seconds);
}

const char *spk_story_end(const spk_net *net, const spk_tries *tries)
{
    for (size_t i = 0; i < net->mirrors_n; i++)
        if (tries[i].attempts > 0 && tries[i].faults[SPK_FAULT_MISSING] == 0)
            return "it cannot be had";
    return net->mirrors_n > 1 ? "no mirror has it" : "it is not there";
}

/* The code that fits all mirrors, else NETWORK. */
static spk_status code_of(const spk_net *net, const spk_tries *tries)
{
    static const struct {
        spk_net_fault fault;
        spk_status code;
    } codes[] = {{SPK_FAULT_MISSING, SPK_E_NOT_FOUND},
                 {SPK_FAULT_DENIED, SPK_E_PERMISSION},
                 {SPK_FAULT_DIGEST, SPK_E_CHECKSUM},
                 {SPK_FAULT_CHANGED, SPK_E_FORMAT}};
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
        bool all = net->mirrors_n > 0;
        for (size_t i = 0; i < net->mirrors_n; i++)
            all = all && tries[i].faults[codes[k].fault] > 0;
        if (all)
            return codes[k].code;
    }
    return SPK_E_NETWORK;
}

spk_status spk_story_tell(const spk_net *net, const spk_tries *tries, const char *why, spk_error *err)
{
    spk_buf text = {0};
    spk_status st = spk_buf_printf(&text, err, "%s", why), code = code_of(net, tries);
    for (size_t i = 0; i < net->mirrors_n && st == SPK_OK; i++)
        st = tell_one(&text, net->mirrors[i].place.prefix, &tries[i], err);
    if (st == SPK_OK) {
        st = spk_error_set(err, code, "%s", (const char *)text.data);
        if (err)
            err->retryable = code == SPK_E_NETWORK;
    }
    spk_buf_free(&text);
    return st;
}
