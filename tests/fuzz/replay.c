/* Runs a fuzz target over files and folders of files, without libFuzzer: for the committed corpora and for a single
 * finding. Prints how many inputs ran; a finding ends the program by its sanitizer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path, size_t size)
{
    /* malloc'ed at its exact size, so that a byte read too far is seen. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *file = fopen(path, "rb");
    int bad = !data || !file || fread(data, 1, size, file) != size;
    if (bad)
        perror(path);
    else
        LLVMFuzzerTestOneInput(data, size);
    if (file)
        fclose(file);
    free(data);
    return bad ? -1 : 1;
}

/* Number of inputs run, -1 on an error. */
static int run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(path, (size_t)st.st_size);
    DIR *folder = opendir(path);
    int total = folder ? 0 : -1;
    for (struct dirent *entry; folder && total >= 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        int n = run_path(name);
        total = n < 0 ? -1 : total + n;
    }
    if (folder)
        closedir(folder);
    return total;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int n = run_path(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%d passed, 0 failed\n", total);
    return total ? 0 : 1;
}
