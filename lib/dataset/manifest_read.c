/* Reading manifest.json: format-spec/dataset.md section 3. Size, depth and number of values are bounded before the JSON
 * parser sees the text; unknown keys are ignored, since minor versions add keys. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "dataset/json_guard.h"
#include "dataset/manifest.h"
#include "dataset/manifest_json.h"
#include "dataset/publish.h"
#include "dataset/table.h"

#define NOT_OURS "not a shardpack manifest: "

void spk_manifest_free(spk_manifest *m)
{
    for (size_t i = 0; i < m->fields_n; i++) {
        free(m->fields[i].name);
        free(m->fields[i].kind);
        for (size_t k = 0; k < m->fields[i].stored_n; k++)
            free(m->fields[i].stored[k].encoding);
        free(m->fields[i].stored);
    }
    for (size_t i = 0; i < m->classes_n; i++)
        free(m->classes[i]);
    for (size_t i = 0; i < m->mirrors_n; i++)
        free(m->mirrors[i]);
    free(m->mirrors);
    free(m->fields);
    free(m->classes);
    free(m->table_name);
    free(m->pack);
    memset(m, 0, sizeof *m);
}

/* "MAJOR.MINOR", major 1. */
static spk_status check_version(const char *version, spk_error *err)
{
    size_t major = strspn(version, "0123456789");
    size_t minor = version[major] == '.' ? strspn(version + major + 1, "0123456789") : 0;
    bool zeros = (major > 1 && version[0] == '0') || (minor > 1 && version[major + 1] == '0');
    if (major == 0 || minor == 0 || version[major + 1 + minor] || zeros)
        return spk_error_set(err, SPK_E_FORMAT, "key \"version\": \"%.40s\" is not MAJOR.MINOR", version);
    if (major != 1 || version[0] != '1')
        return spk_error_set(err, SPK_E_UNSUPPORTED, "format version %.40s; this library reads 1.x", version);
    return SPK_OK;
}

static spk_status read_head(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const char *text = NULL;
    spk_status status = spk_json_text(root, "format", &text, err);
    if (status == SPK_OK && strcmp(text, "shardpack") != 0)
        status = spk_error_set(err, SPK_E_FORMAT, "key \"format\" is \"%.40s\", not \"shardpack\"", text);
    if (status < 0) {
        spk_error_prefix(err, "not a shardpack manifest");
        return status;
    }
    SPK_TRY(spk_json_text(root, "version", &text, err));
    SPK_TRY(check_version(text, err));
    SPK_TRY(spk_json_text(root, "fingerprint", &text, err));
    uint8_t raw[32];
    if (!spk_unhex(raw, sizeof raw, text, strlen(text)))
        return spk_error_set(err, SPK_E_FORMAT, "key \"fingerprint\": \"%.80s\" is not 64 lower-case hex digits", text);
    memcpy(m->fingerprint, text, sizeof m->fingerprint);
    return SPK_OK;
}

static spk_status read_totals(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    SPK_TRY(spk_json_number(root, "samples", &m->samples, err));
    SPK_TRY(spk_json_number(root, "shards", &m->shards, err));
    SPK_TRY(spk_json_number(root, "frames", &m->frames, err));
    SPK_TRY(spk_json_number(root, "bytes", &m->bytes, err));
    SPK_TRY(spk_json_number(root, "tar_bytes", &m->tar_bytes, err));
    SPK_TRY(spk_json_number(root, "payload_bytes", &m->payload_bytes, err));
    if (m->shards > SPK_TABLE_ROWS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "key \"shards\" is %" PRIu64 ", more than the %" PRIu64 " allowed",
                             m->shards, SPK_TABLE_ROWS_MAX);
    if (m->frames < m->shards || m->samples < m->frames || (m->shards == 0 && m->samples > 0))
        return spk_error_set(err, SPK_E_FORMAT,
                             "%" PRIu64 " samples in %" PRIu64 " frames in %" PRIu64
                             " shards: a frame and a shard hold at least one sample",
                             m->samples, m->frames, m->shards);
    return SPK_OK;
}

/* Only what an encoding stands for may be more than what is stored. */
static spk_status check_payload(const spk_manifest *m, spk_error *err)
{
    for (size_t i = 0; i < m->fields_n; i++)
        if (m->fields[i].stored_n > 0)
            return SPK_OK;
    if (m->payload_bytes > m->tar_bytes)
        return spk_error_set(err, SPK_E_FORMAT, "payload_bytes is %" PRIu64 ", more than tar_bytes, %" PRIu64,
                             m->payload_bytes, m->tar_bytes);
    return SPK_OK;
}

static spk_status read_table(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *object = NULL;
    const char *digest = NULL;
    char want[64];
    SPK_TRY(spk_json_get(root, "table", JSON_OBJECT, &object, err));
    spk_json_at at = {object, "table."};
    SPK_TRY(spk_json_copy(&at, "file", &m->table_name, err));
    SPK_TRY(spk_json_number(&at, "bytes", &m->table_bytes, err));
    SPK_TRY(spk_json_text(&at, "sha256", &digest, err));
    SPK_TRY(spk_table_file_name(want, sizeof want, m->fingerprint, err));
    if (strcmp(m->table_name, want) != 0)
        return spk_error_set(err, SPK_E_FORMAT, "key \"table.file\" is \"%.120s\", expected \"%s\"", m->table_name,
                             want);
    if (!spk_unhex(m->table_sha256, sizeof m->table_sha256, digest, strlen(digest)))
        return spk_error_set(err, SPK_E_FORMAT, "key \"table.sha256\": \"%.80s\" is not 64 lower-case hex digits",
                             digest);
    return SPK_OK;
}

static spk_status read_order(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const char *order = NULL;
    SPK_TRY(spk_json_text(root, "order", &order, err));
    m->shuffled = strcmp(order, "shuffled") == 0;
    if (!m->shuffled && strcmp(order, "stored") != 0)
        return spk_error_set(err, SPK_E_FORMAT, "key \"order\" is \"%.40s\", neither \"shuffled\" nor \"stored\"",
                             order);
    return SPK_OK;
}

static spk_status read_pack(spk_manifest *m, const spk_json_at *root, spk_error *err)
{
    const json_t *object = NULL;
    if (!json_object_get(root->object, "pack"))
        return SPK_OK;
    SPK_TRY(spk_json_get(root, "pack", JSON_OBJECT, &object, err));
    m->pack = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    return m->pack ? SPK_OK : spk_error_set(err, SPK_E_NOMEM, "out of memory for the manifest");
}

static spk_status read_root(spk_manifest *m, const json_t *value, spk_error *err)
{
    spk_json_at root = {value, ""};
    if (!json_is_object(value))
        return spk_error_set(err, SPK_E_FORMAT, NOT_OURS "the text is %s, not an object", spk_json_type_name(value));
    SPK_TRY(read_head(m, &root, err));
    SPK_TRY(read_totals(m, &root, err));
    SPK_TRY(read_table(m, &root, err));
    SPK_TRY(read_order(m, &root, err));
    SPK_TRY(spk_manifest_read_fields(m, &root, err));
    SPK_TRY(check_payload(m, err));
    SPK_TRY(spk_manifest_read_classes(m, &root, err));
    SPK_TRY(spk_manifest_read_mirrors(m, &root, err));
    SPK_TRY(spk_manifest_read_images(m, &root, err));
    return read_pack(m, &root, err);
}

static spk_status bad_json(const json_error_t *why, spk_error *err)
{
    const char *text =
        json_error_code(why) == json_error_null_character ? "a string has the character U+0000" : why->text;
    return spk_error_at(err, SPK_E_FORMAT, why->position > 0 ? (uint64_t)why->position : 0,
                        NOT_OURS "line %d, column %d: %s", why->line, why->column, text);
}

spk_status spk_manifest_parse(spk_manifest *m, const char *text, size_t n, spk_error *err)
{
    json_error_t why;
    if (n > SPK_MANIFEST_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%zu bytes, more than the %u a manifest may have", n, SPK_MANIFEST_MAX);
    if (n >= 4 && memcmp(text, "\x28\xb5\x2f\xfd", 4) == 0)
        return spk_error_set(err, SPK_E_FORMAT,
                             NOT_OURS "begins as a shard does; give the dataset's folder or its manifest");
    if (n > 0 && text[0] == '#')
        return spk_error_set(err, SPK_E_FORMAT,
                             NOT_OURS "begins as a shard table does; give the dataset's folder or its manifest");
    if (n >= 262 && memcmp(text + 257, "ustar", 5) == 0)
        return spk_error_set(err, SPK_E_FORMAT, NOT_OURS "is a tar archive; `shardpack pack` makes a dataset of it");
    const char *zero = memchr(text, 0, n); /* jansson takes it for white space */
    if (zero)
        return spk_error_at(err, SPK_E_FORMAT, (uint64_t)(zero - text), NOT_OURS "zero byte at byte %td", zero - text);
    SPK_TRY(spk_json_guard(text, n, err));
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root && json_error_code(&why) == json_error_out_of_memory)
        return spk_error_nomem(err, n);
    if (!root)
        return bad_json(&why, err);
    spk_status status = read_root(m, root, err);
    json_decref(root);
    return status;
}
