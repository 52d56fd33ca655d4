/* Reading and checking the files of one sample. */
#include <string.h>

#include "base/error.h"
#include "pack/build_parts.h"
#include "shard/tar.h"

spk_status spk_tar_pad(spk_buf *tar, spk_error *err)
{
    size_t n = (SPK_TAR_BLOCK - tar->len % SPK_TAR_BLOCK) % SPK_TAR_BLOCK;
    SPK_TRY(spk_buf_reserve(tar, n, err));
    if (n > 0)
        memset(tar->data + tar->len, 0, n);
    tar->len += n;
    return SPK_OK;
}

/* The file behind w->tar.len, if it is an image that is to be checked. decode: not only its header. *bad: it has no
 * place in the dataset. */
static spk_status check_image(spk_worker *w, const spk_pack_plan_member *m, bool decode, bool *bad, spk_error *err)
{
    const spk_pack_options *o = w->run->b->plan->o;
    const spk_input_file *file = m->file;
    spk_image_info info = {0};
    spk_error reason;
    if (!w->checker || !w->run->b->plan->image[m->field])
        return SPK_OK;
    spk_error_clear(&reason);
    spk_status status =
        spk_image_check(w->checker, w->tar.data + w->tar.len, (size_t)m->size, decode, o->max_pixels, &info, &reason);
    if (status == SPK_OK) {
        spk_tally_image(&w->sample, &info);
        return SPK_OK;
    }
    if (status == SPK_E_NOMEM || o->on_bad == SPK_ON_BAD_FAIL) {
        w->run->b->bad += status != SPK_E_NOMEM;
        if (err)
            *err = reason;
        spk_input_prefix(w->run->b->plan->in, w->run->b->reading.src, file, err);
        return status;
    }
    *bad = o->on_bad == SPK_ON_BAD_SKIP;
    return spk_tally_bad(&w->sample, spk_input_str(w->run->b->plan->in, file->path), *bad ? "skipped" : "kept",
                         reason.text, err);
}

/* The same from a dataset, where it may be stored in another form; what cannot be made anew stays in it. */
static spk_status read_packed(spk_worker *w, const spk_pack_plan_member *m, spk_stored_form *form, spk_error *err)
{
    const spk_input *in = w->run->b->plan->in;
    const spk_input_sample *sample = &in->samples[m->file->sample];
    spk_packed_field f;
    SPK_TRY(spk_packed_get(w->packed, m->file->sample, (uint32_t)((size_t)(m->file - in->files) - sample->first),
                           w->transcoder != NULL, &f, err));
    SPK_TRY(spk_buf_reserve(&w->tar, f.n + 1, err));
    if (f.n > 0)
        memcpy(w->tar.data + w->tar.len, f.data, f.n);
    *form = (spk_stored_form){f.n, m->size, f.form};
    return SPK_OK;
}

/* Reads a file behind w->tar.len, without moving it. */
static spk_status read_file(spk_worker *w, const spk_pack_plan_member *m, spk_stored_form *form, spk_error *err)
{
    if (w->packed)
        return read_packed(w, m, form, err);
    const char *path = spk_input_str(w->run->b->plan->in, m->file->path);
    SPK_TRY(spk_buf_reserve(&w->tar, (size_t)m->size + 1, err));
    return spk_read_whole(&w->run->b->reading, path, m->file, w->tar.data + w->tar.len, err);
}

/* Whether members of the sample in that form of a field can have its name: it fits, and is no file's. */
static bool can_be_named(const spk_pack_plan *plan, uint32_t sample, uint32_t field, spk_form form)
{
    const spk_input_sample *s = &plan->in->samples[sample];
    char room[SPK_FIELD_MAX + 1];
    const char *name = spk_tar_field(room, plan->fields[field], spk_form_name(form));
    for (uint32_t i = 0; name && i < s->files; i++)
        if (strcmp(plan->fields[plan->in->files[s->first + i].field], name) == 0)
            return false;
    return name != NULL;
}

/* The stored form of the file behind w->tar.len, if it is a JPEG and has one, to w->stored. *stored: it has. */
static spk_status transcode(spk_worker *w, uint32_t sample, const spk_pack_plan_member *m, spk_stored_form *form,
                            bool *stored, spk_error *err)
{
    const spk_pack_options *o = w->run->b->plan->o;
    const uint8_t *data = w->tar.data + w->tar.len;
    spk_transcode_result result = SPK_TRANSCODE_OTHER, second = SPK_TRANSCODE_OTHER;
    if (form->form == SPK_FORM_PIXELS)
        w->sample.jpeg_pixels++;
    if (!w->transcoder || form->form != SPK_FORM_IDENTITY || !w->run->b->plan->image[m->field] || m->size == 0 ||
        spk_image_sniff(data, (size_t)m->size) != SPK_IMAGE_JPEG ||
        !can_be_named(w->run->b->plan, sample, m->field, SPK_FORM_COEFFICIENTS))
        return SPK_OK;
    SPK_TRY(spk_transcode(w->transcoder, data, (size_t)m->size, o->max_pixels, &w->stored, &result, err));
    form->form = result == SPK_TRANSCODED ? SPK_FORM_COEFFICIENTS : SPK_FORM_IDENTITY;
    if (w->pixels && (result == SPK_TRANSCODE_OTHER || result == SPK_TRANSCODE_UNEQUAL) &&
        can_be_named(w->run->b->plan, sample, m->field, SPK_FORM_PIXELS)) {
        SPK_TRY(spk_transcode_pixels(w->pixels, w->transcoder, data, (size_t)m->size, o->max_pixels, &w->stored,
                                     &form->original, &second, err));
        form->form = second == SPK_TRANSCODED ? SPK_FORM_PIXELS : SPK_FORM_IDENTITY;
        result = second == SPK_TRANSCODE_NO_GAIN ? second : result;
    }
    if (form->form == SPK_FORM_PIXELS)
        w->sample.jpeg_pixels++;
    else
        w->sample.jpeg[result]++;
    if (form->form == SPK_FORM_IDENTITY) {
        form->original = m->size;
        return SPK_OK;
    }
    *stored = true;
    form->size = w->stored.len;
    return SPK_OK;
}

/* A file in the form in which it is stored behind w->tar.len. */
static spk_status put_file(spk_worker *w, uint32_t sample, const spk_pack_plan_member *m, spk_stored_form *form,
                           bool *bad, spk_error *err)
{
    bool stored = false, decode = w->run->b->plan->o->check == SPK_CHECK_DECODE;
    SPK_TRY(read_file(w, m, form, err));
    SPK_TRY(transcode(w, sample, m, form, &stored, err));
    /* What has its coefficients stored is sound: it has been decoded. */
    SPK_TRY(check_image(w, m, decode && form->form != SPK_FORM_COEFFICIENTS, bad, err));
    if (stored) {
        SPK_TRY(spk_buf_reserve(&w->tar, w->stored.len, err)); /* it may be larger than the file, by a little */
        memcpy(w->tar.data + w->tar.len, w->stored.data, w->stored.len);
    }
    w->tar.len += (size_t)form->size;
    return SPK_OK;
}

/* Of a sample that is stored in another way. */
static spk_status check_file(spk_worker *w, const spk_pack_plan_member *m, bool *bad, spk_error *err)
{
    spk_stored_form form;
    SPK_TRY(read_file(w, m, &form, err));
    return check_image(w, m, w->run->b->plan->o->check == SPK_CHECK_DECODE, bad, err);
}

static spk_status put_member(spk_worker *w, uint32_t sample, const spk_pack_plan_member *m, bool *bad, spk_error *err)
{
    const spk_input *in = w->run->b->plan->in;
    spk_stored_form form = {m->size, m->size, SPK_FORM_IDENTITY};
    char room[SPK_FIELD_MAX + 1];
    SPK_TRY(spk_buf_reserve(&w->tar, SPK_TAR_BLOCK, err));
    size_t header = w->tar.len;
    w->tar.len += SPK_TAR_BLOCK;
    if (m->file) {
        SPK_TRY(put_file(w, sample, m, &form, bad, err));
    } else {
        SPK_TRY(spk_buf_append(&w->tar, m->text, (size_t)m->size, err));
    }
    const char *field = w->run->b->plan->fields[m->field];
    const char *name = spk_tar_field(room, field, spk_form_name(form.form));
    if (!name)
        return spk_error_set(err, SPK_E_INVALID, "field \"%s\" is too long", field);
    SPK_TRY(spk_tar_header(w->tar.data + header, spk_input_str(in, in->samples[sample].key), name, form.size, err));
    SPK_TRY(spk_buf_append(&w->forms, &form, sizeof form, err));
    return spk_tar_pad(&w->tar, err);
}

static spk_status add_to_index(spk_worker *w, uint32_t sample, const char *key, spk_error *err)
{
    const spk_pack_plan *plan = w->run->b->plan;
    spk_pack_plan_members walk;
    spk_pack_plan_member m;
    size_t forms = w->forms.len / sizeof(spk_stored_form);
    SPK_TRY(spk_index_part_sample(w->part, key, err));
    size_t i = 0;
    for (spk_pack_plan_members_begin(&walk, plan, sample); spk_pack_plan_members_next(&walk, &m);) {
        const char *path = spk_input_made(plan->in, m.file) ? NULL : spk_input_str(plan->in, m.file->path);
        spk_stored_form form = {m.size, m.size, SPK_FORM_IDENTITY};
        if (i < forms) /* a sample of a streamed frame has none */
            memcpy(&form, w->forms.data + i++ * sizeof form, sizeof form);
        SPK_TRY(spk_index_part_member(w->part, plan->fields[m.field], spk_form_name(form.form), path, form.size,
                                      form.original, err));
        spk_tally_form *sum = &w->frame.fields[m.field].forms[form.form];
        sum->samples++;
        sum->bytes += form.size;
        sum->original += form.original;
        if (path) {
            w->frame.files++;
            w->frame.payload += form.original;
        }
    }
    w->frame.samples++;
    return SPK_OK;
}

spk_status spk_sample_read(spk_worker *w, uint32_t sample, bool all, bool *stored, spk_error *err)
{
    const spk_pack_plan *plan = w->run->b->plan;
    const char *key = spk_input_str(plan->in, plan->in->samples[sample].key);
    size_t mark = w->tar.len;
    bool skip = false;
    spk_pack_plan_members walk;
    spk_pack_plan_member m;

    spk_tally_reset(&w->sample);
    w->forms.len = 0;
    for (spk_pack_plan_members_begin(&walk, plan, sample); spk_pack_plan_members_next(&walk, &m);) {
        bool bad = false;
        if (all)
            SPK_TRY(put_member(w, sample, &m, &bad, err));
        else if (w->checker && m.file && plan->image[m.field])
            SPK_TRY(check_file(w, &m, &bad, err));
        skip = skip || bad;
    }
    *stored = !skip;
    if (!skip) {
        SPK_TRY(spk_tally_merge(&w->frame, &w->sample, err));
        return add_to_index(w, sample, key, err);
    }
    w->tar.len = mark;
    memset(&w->sample.images, 0, sizeof w->sample.images);
    memset(&w->sample.jpeg, 0, sizeof w->sample.jpeg);
    w->sample.jpeg_pixels = 0;
    w->sample.skipped_samples = 1;
    return spk_tally_merge(&w->frame, &w->sample, err);
}
