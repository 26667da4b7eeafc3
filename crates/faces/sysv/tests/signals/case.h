/* What the programs of this folder use: an end that says why, and what another task does. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void fail(const char *what)
{
    printf("FAILED: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* What the kernel says of a thread behind its name: the state comes first, `?` if it has ended. */
static const char *stat_of(pid_t thread, char text[static 512])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", thread, thread);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, 511, file) : 0;
    if (file)
        fclose(file);
    text[len] = 0;
    char *end = strrchr(text, ')');
    return end ? end + 2 : "?";
}

static inline int state_of(pid_t thread)
{
    char text[512];
    return *stat_of(thread, text);
}
