/* Options of datasets by URL. */
#include "remote.h"

spk_dataset_options remote_options(const remote_values *v)
{
    return (spk_dataset_options){.size = sizeof(spk_dataset_options),
                                 .mirrors = v->mirrors.items,
                                 .mirror_count = v->mirrors.count,
                                 .deadline = v->deadline,
                                 .cache_dir = v->cache_dir,
                                 .cache_limit = v->cache_limit};
}
