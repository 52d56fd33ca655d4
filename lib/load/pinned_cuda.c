/* Finds and loads libcudart. No state of its own. */
#define _GNU_SOURCE
#include "load/pinned_cuda.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST 11
#define NEWEST 13
#define PATH_CHARS 4096

static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so.11"};
static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

spk_status spk_cuda_fail(const spk_cuda *cuda, spk_cuda_status status, spk_error *err, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    (void)cuda->GetLastError();
    const char *words = cuda->GetErrorString(status);
    return spk_error_set(err, status == SPK_CUDA_NO_MEMORY ? SPK_E_NOMEM : SPK_E_DEVICE, "%s: CUDA error %u (%s)", what,
                         status, words ? words : "unknown");
}

/* Path of the first libcudart among what is loaded; PyTorch's wheels bring one, under whatever name. */
static int look_at_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    const char *path = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(path, '/');
    if (strncmp(slash ? slash + 1 : path, "libcudart", 9) != 0 || strlen(path) >= PATH_CHARS)
        return 0;
    memcpy(user, path, strlen(path) + 1);
    return 1;
}

static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static spk_status load_calls(spk_cuda *c, spk_error *err)
{
    const char *missing = NULL;
    void *p = NULL;
#define LOAD(name, parameters)                                                                                         \
    p = dlsym(c->library, "cuda" #name);                                                                               \
    memcpy(&c->name, &p, sizeof p);                                                                                    \
    missing = p ? missing : "cuda" #name;
    SPK_CUDA_CALLS(LOAD)
#undef LOAD
    p = dlsym(c->library, "cudaGetErrorString");
    memcpy(&c->GetErrorString, &p, sizeof p);
    missing = p ? missing : "cudaGetErrorString";
    if (missing)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "it lacks %s", missing);
    spk_cuda_status status = c->RuntimeGetVersion(&c->version);
    if (status != SPK_CUDA_OK)
        return spk_cuda_fail(c, status, err, "asking for its version");
    if (c->version / 1000 < OLDEST || c->version / 1000 > NEWEST)
        return spk_error_set(err, SPK_E_UNSUPPORTED, "version %d.%d of the CUDA runtime: must be %d to %d",
                             c->version / 1000, c->version % 1000 / 10, OLDEST, NEWEST);
    return SPK_OK;
}

/* Takes the library if it is open and fit; else *err says why not, if it does not say something yet. */
static bool take(spk_cuda *c, void *library, const char *name, spk_error *err)
{
    spk_error why;
    if (!library)
        return false;
    memset(c, 0, sizeof *c);
    c->library = library;
    spk_error_clear(&why);
    if (load_calls(c, &why) == SPK_OK)
        return true;
    if (err->code == SPK_OK) {
        spk_error_prefix(&why, "%s", name);
        *err = why;
    }
    spk_cuda_close(c);
    return false;
}

static bool take_named(spk_cuda *c, spk_error *err)
{
    char path[PATH_CHARS];
    for (size_t f = 0; f < COUNT(folders); f++)
        for (size_t n = 0; n < COUNT(names); n++) {
            snprintf(path, sizeof path, "%s%s", folders[f], names[n]);
            if (take(c, open_library(path), path, err))
                return true;
        }
    return false;
}

spk_status spk_cuda_open(spk_cuda *c, spk_error *err)
{
    spk_error local;
    char path[PATH_CHARS] = "";
    const char *chosen = secure_getenv("SHARDPACK_CUDART");
    memset(c, 0, sizeof *c);
    spk_error_clear(&local);
    if (chosen && *chosen) {
        void *library = open_library(chosen);
        if (!library)
            (void)spk_error_set(&local, SPK_E_UNSUPPORTED, "SHARDPACK_CUDART: %s", dlerror());
        else if (take(c, library, chosen, &local))
            return SPK_OK;
    } else {
        (void)dl_iterate_phdr(look_at_object, path);
        if (*path && take(c, open_library(path), path, &local))
            return SPK_OK;
        if (take_named(c, &local))
            return SPK_OK;
    }
    if (local.code == SPK_OK)
        (void)spk_error_set(&local, SPK_E_UNSUPPORTED,
                            "no CUDA runtime found (libcudart.so.13, .12 or .11.0 in the loader's path or "
                            "/usr/local/cuda/lib64); SHARDPACK_CUDART can name one");
    if (err)
        *err = local;
    return local.code;
}

void spk_cuda_close(spk_cuda *c)
{
    if (c->library)
        dlclose(c->library);
    c->library = NULL;
}
