/* spk_repack: the packer with a dataset as its source, and that dataset's own settings. Every sample stays in its shard
 * and frame, so what comes out is what packing the files with the other form of JPEG would have made. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/options.h"
#include "dataset/dataset.h"
#include "pack/describe.h"
#include "pack/packing.h"

/* Files that are gone do not come back unasked. */
static spk_status refuse_gone(const spk_packing *p, spk_error *err)
{
    if (p->in.gone == 0 || p->o.jpeg == SPK_JPEG_FAST || p->o.allow_unrestorable)
        return SPK_OK;
    return spk_error_set(err, SPK_E_UNSUPPORTED,
                         "%s: the files of %" PRIu64 " JPEG image%s are lost, only the pixels were kept when they were "
                         "packed; allow_unrestorable puts other files with the same pixels in their place",
                         p->src, p->in.gone, p->in.gone == 1 ? "" : "s");
}

static spk_status settle(spk_packing *p, const spk_repack_options *o, char prefix[SPK_PREFIX_MAX + 1], spk_error *err)
{
    spk_pack_options given = {.size = sizeof given,
                              .jobs = o->jobs,
                              .jpeg = o->jpeg,
                              .allow_unrestorable = o->allow_unrestorable,
                              .no_shuffle = 1, /* the dataset's order */
                              .check = SPK_CHECK_NONE,
                              .force = o->force,
                              .dry_run = o->dry_run,
                              .on_progress = o->on_progress,
                              .on_note = o->on_note,
                              .user = o->user};
    spk_describe_settings(p->dataset->manifest.pack, &given, prefix);
    return spk_pack_options_settle(&p->o, &given, err);
}

/* To be compared with the target; a dataset that is elsewhere has none. */
static spk_status open_folder(spk_packing *p, spk_error *err)
{
    if (p->dataset->net)
        return SPK_OK;
    p->src_fd = open(spk_dataset_folder(p->dataset), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return p->src_fd < 0 ? spk_error_sys(err, errno, "%s", spk_dataset_folder(p->dataset)) : SPK_OK;
}

spk_status spk_repack(const char *dataset, const char *dst, const spk_repack_options *options, spk_pack_result *result,
                      spk_error *err)
{
    spk_pack_result unused = {0};
    spk_repack_options o = {0};
    char prefix[SPK_PREFIX_MAX + 1];
    spk_packing p = {.src = dataset, .src_fd = -1, .result = result ? result : &unused, .scanned = refuse_gone};
    memset(p.result, 0, sizeof *p.result);
    SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    SPK_TRY(spk_dataset_open(&p.dataset, dataset, o.dataset, err));
    spk_status status = settle(&p, &o, prefix, err);
    if (status < 0)
        spk_error_prefix(err, "%s", dataset);
    if (status == SPK_OK)
        status = open_folder(&p, err);
    if (status == SPK_OK)
        return spk_packing_run(&p, dst, err);
    spk_dataset_close(p.dataset);
    return status;
}
