/* The state of a loader as JSON text: a few hundred bytes, whatever the dataset. Read with suspicion, since it comes
 * from a file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "dataset/json_guard.h"
#include "dataset/manifest_json.h"
#include "load/loader_parts.h"

#define STATE_FORMAT "shardpack-state"
#define STATE_VERSION 1u
#define STATE_MAX 65536u /* bytes */

/* What the text says. */
typedef struct state {
    char fingerprint[65];
    uint64_t version, epoch, position, total, substituted;
    uint64_t seed; /* as text in the file: other readers keep 53 bits of a number */
    bool shuffle;
    char choice[SPK_CHOICE_CHARS]; /* as in the spec */
    uint64_t order, global_batch, chunk, groups, buffer, span, echo;
} state;

spk_status spk_loader_state_save(const spk_loader *l, char **out, spk_error *err)
{
    char seed[24];
    const spk_plan_spec *p = &l->core->spec.plan;
    *out = NULL;
    SPK_TRY(spk_loader_check_owner(l, err));
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    json_t *root =
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:I, s:s, s:{s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I}}", "format",
                  STATE_FORMAT, "version", (int)STATE_VERSION, "fingerprint", spk_dataset_fingerprint(l->dataset),
                  "epoch", (json_int_t)l->delivered.epoch, "position", (json_int_t)l->delivered.x, "total",
                  (json_int_t)l->core->spec.total, "substituted", (json_int_t)l->substituted, "seed", seed, "plan",
                  "order", (int)SPK_PLAN_ORDER, "shuffle", (int)p->shuffle, "global_batch", (json_int_t)p->global_batch,
                  "chunk", (json_int_t)p->chunk, "lane_groups", (json_int_t)p->groups, "lane_buffer",
                  (json_int_t)p->buffer, "span", (json_int_t)p->span, "echo", (json_int_t)p->echo);
    if (root && *l->core->spec.choice && json_object_set_new(root, "indices", json_string(l->core->spec.choice)) != 0) {
        json_decref(root);
        root = NULL;
    }
    *out = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return *out ? SPK_OK : spk_error_nomem(err, 1024);
}

static spk_status parse_plan(const json_t *root, state *s, spk_error *err)
{
    const json_t *plan = NULL;
    const spk_json_at top = {root, ""};
    SPK_TRY(spk_json_get(&top, "plan", JSON_OBJECT, &plan, err));
    const spk_json_at at = {plan, "plan."};
    SPK_TRY(spk_json_number(&at, "order", &s->order, err));
    if (s->order != SPK_PLAN_ORDER)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "order of version %" PRIu64 ", this library makes %u", s->order,
                             SPK_PLAN_ORDER);
    const json_t *shuffle = json_object_get(plan, "shuffle");
    if (!json_is_boolean(shuffle))
        return spk_error_set(err, SPK_E_FORMAT, "key \"plan.shuffle\" is no boolean");
    s->shuffle = json_is_true(shuffle);
    SPK_TRY(spk_json_number(&at, "global_batch", &s->global_batch, err));
    SPK_TRY(spk_json_number(&at, "chunk", &s->chunk, err));
    SPK_TRY(spk_json_number(&at, "lane_groups", &s->groups, err));
    SPK_TRY(spk_json_number(&at, "lane_buffer", &s->buffer, err));
    SPK_TRY(spk_json_number(&at, "span", &s->span, err));
    SPK_TRY(spk_json_number(&at, "echo", &s->echo, err));
    if (s->global_batch < 1 || s->global_batch > SPK_PLAN_BATCH_MAX || s->chunk < 1 || s->chunk > SPK_PLAN_BATCH_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "global_batch of %" PRIu64 ", chunk of %" PRIu64 ": must be 1 to %u",
                             s->global_batch, s->chunk, SPK_PLAN_BATCH_MAX);
    if (s->span < 1 || s->span > UINT32_MAX)
        return spk_error_set(err, SPK_E_FORMAT, "span of %" PRIu64 ": must be 1 to %u", s->span, UINT32_MAX);
    uint64_t chunks = (s->global_batch + s->chunk - 1) / s->chunk;
    if (s->groups < 1 || s->groups > SPK_PLAN_LANES_MAX / chunks)
        return spk_error_set(err, SPK_E_FORMAT, "lane_groups of %" PRIu64 ": must be 1 to %" PRIu64, s->groups,
                             SPK_PLAN_LANES_MAX / chunks);
    return SPK_OK;
}

static spk_status parse_seed(const spk_json_at *at, uint64_t *out, spk_error *err)
{
    const char *text = NULL;
    char again[24];
    SPK_TRY(spk_json_text(at, "seed", &text, err));
    *out = strtoull(text, NULL, 10);
    snprintf(again, sizeof again, "%" PRIu64, *out);
    if (strcmp(text, again) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "key \"seed\" is \"%.30s\", no number", text);
    return SPK_OK;
}

static spk_status parse_root(const json_t *root, state *s, spk_error *err)
{
    const spk_json_at at = {root, ""};
    const char *text = NULL;
    SPK_TRY(spk_json_text(&at, "format", &text, err));
    if (strcmp(text, STATE_FORMAT) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "its format is \"%.40s\", not \"" STATE_FORMAT "\"", text);
    SPK_TRY(spk_json_number(&at, "version", &s->version, err));
    if (s->version != STATE_VERSION)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "version %" PRIu64 ", this library knows %u", s->version,
                             STATE_VERSION);
    SPK_TRY(spk_json_text(&at, "fingerprint", &text, err));
    snprintf(s->fingerprint, sizeof s->fingerprint, "%s", text);
    SPK_TRY(spk_json_number(&at, "epoch", &s->epoch, err));
    SPK_TRY(spk_json_number(&at, "position", &s->position, err));
    SPK_TRY(spk_json_number(&at, "total", &s->total, err));
    SPK_TRY(spk_json_number(&at, "substituted", &s->substituted, err));
    SPK_TRY(parse_seed(&at, &s->seed, err));
    if (json_object_get(root, "indices")) {
        SPK_TRY(spk_json_text(&at, "indices", &text, err));
        snprintf(s->choice, sizeof s->choice, "%s", text);
    }
    SPK_TRY(parse_plan(root, s, err));
    if (s->epoch > SPK_PLAN_EPOCH_MAX || s->position > s->total)
        return spk_error_set(err, SPK_E_FORMAT, "position %" PRIu64 " of %" PRIu64 " in epoch %" PRIu64 " cannot be",
                             s->position, s->total, s->epoch);
    return SPK_OK;
}

static spk_status parse(const char *text, state *s, spk_error *err)
{
    json_error_t why;
    size_t n = strnlen(text, STATE_MAX + 1);
    memset(s, 0, sizeof *s);
    if (n > STATE_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %u bytes", STATE_MAX);
    SPK_TRY(spk_json_guard(text, n, err));
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return spk_error_set(err, SPK_E_FORMAT, "line %d: %s", why.line, why.text);
    spk_status status =
        json_is_object(root) ? parse_root(root, s, err) : spk_error_set(err, SPK_E_FORMAT, "no JSON object");
    json_decref(root);
    return status;
}

static spk_status differ(spk_buf *list, const char *name, uint64_t then, uint64_t now, spk_error *err)
{
    if (then == now)
        return SPK_OK;
    return spk_buf_printf(list, err, "%s%s was %" PRIu64 " and is %" PRIu64, list->len > 0 ? ", " : "", name, then,
                          now);
}

/* Everything that makes another stream. Without shuffling the order does not depend on chunks and lanes. */
static spk_status list_differences(const spk_loader *l, const state *s, spk_buf *list, spk_error *err)
{
    const spk_load_spec *spec = &l->core->spec;
    const spk_plan_spec *p = &spec->plan;
    const char *fingerprint = spk_dataset_fingerprint(l->dataset);
    if (strcmp(s->fingerprint, fingerprint) != 0)
        SPK_TRY(spk_buf_printf(list, err, "the dataset's fingerprint was %.16s... and is %.16s...", s->fingerprint,
                               fingerprint));
    SPK_TRY(differ(list, "seed", s->seed, p->seed, err));
    SPK_TRY(differ(list, "shuffle", s->shuffle, p->shuffle, err));
    SPK_TRY(differ(list, "echo", s->echo, p->echo, err));
    if (strcmp(s->choice, spec->choice) != 0)
        SPK_TRY(spk_buf_printf(list, err, "%sindices %s", list->len > 0 ? ", " : "",
                               !*s->choice      ? "were not given and are now"
                               : !*spec->choice ? "were given and are not now"
                                                : "were others"));
    SPK_TRY(differ(list, "the number of samples in an epoch (limit)", s->total, spec->total, err));
    if (s->shuffle && p->shuffle) {
        SPK_TRY(differ(list, "chunk", s->chunk, p->chunk, err));
        SPK_TRY(differ(list, "lane_buffer", s->buffer, p->buffer, err));
        if (l->fixed_groups)
            SPK_TRY(differ(list, "lane_groups", s->groups, p->groups, err));
    }
    return SPK_OK;
}

static spk_status compare(const spk_loader *l, const state *s, spk_error *err)
{
    spk_buf list = {0};
    spk_status status = list_differences(l, s, &list, err);
    if (status == SPK_OK && list.len > 0)
        status = spk_error_set(err, SPK_E_CHANGED, "state: %s", (const char *)list.data);
    spk_buf_free(&list);
    return status;
}

/* Continues with the plan that the state was made with: other ranks and batch sizes cut the same order. */
static spk_status go_on(spk_loader *l, const state *s, spk_error *err)
{
    spk_plan_spec plan = l->core->spec.plan;
    l->moves++;
    if (plan.shuffle && (plan.global_batch != s->global_batch || plan.groups != s->groups || plan.span != s->span)) {
        plan.global_batch = s->global_batch;
        plan.groups = (uint32_t)s->groups;
        plan.span = (uint32_t)s->span;
        SPK_TRY(spk_loader_drop(l, &plan, err));
        l->delivered.epoch = SPK_EPOCH_NONE; /* what was begun belongs to another plan */
    }
    SPK_TRY(spk_loader_go(l, s->epoch, s->position, err));
    l->substituted = s->substituted;
    return spk_loader_hints(l, s->position, err);
}

spk_status spk_loader_state_restore(spk_loader *l, const char *text, spk_error *err)
{
    state s;
    spk_error local;
    spk_error_clear(&local);
    SPK_TRY(spk_loader_check_owner(l, err));
    spk_status status = parse(text, &s, &local);
    if (status < 0)
        spk_error_prefix(&local, "state");
    if (status == SPK_OK)
        status = compare(l, &s, &local);
    if (status == SPK_OK)
        status = go_on(l, &s, &local);
    if (status < 0 && err)
        *err = local;
    return status;
}
