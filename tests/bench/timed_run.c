/* Runs a command and writes what it cost, as one line of JSON, to a file:
 *
 *     timed_run FILE COMMAND [ARG...]
 *
 * A small program of its own because Linux counts the memory of the process that starts a command into the command's
 * maximum RSS: started by an interpreter, no command would seem smaller than the interpreter.
 * Exit status: the command's, 128 + N if signal N ended it, 127 if it could not be started. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Runs argv and returns its exit status as described above, or -1 if there is no process to be had. */
static int run(char **argv)
{
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        execvp(argv[0], argv);
        fprintf(stderr, "timed_run: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: timed_run FILE COMMAND [ARG...]\n");
        return 2;
    }
    double start = now();
    int status = run(argv + 2);
    double wall = now() - start;
    struct rusage use;
    if (status < 0 || getrusage(RUSAGE_CHILDREN, &use)) {
        fprintf(stderr, "timed_run: %s\n", strerror(errno));
        return 127;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) {
        fprintf(stderr, "timed_run: %s: %s\n", argv[1], strerror(errno));
        return 127;
    }
    fprintf(out, "{\"wall\": %.6f, \"cpu\": %.6f, \"max_rss\": %lld, \"status\": %d}\n", wall,
            seconds(use.ru_utime) + seconds(use.ru_stime), (long long)use.ru_maxrss * 1024, status);
    if (fclose(out)) {
        fprintf(stderr, "timed_run: %s: %s\n", argv[1], strerror(errno));
        return 127;
    }
    return status;
}
