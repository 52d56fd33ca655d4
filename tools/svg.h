/* A line chart as SVG text: axes with round numbers, lines with dots, one marked point. */
#ifndef TOOLS_SVG_H
#define TOOLS_SVG_H

#include <stddef.h>

typedef struct svg_line {
    const char *name; /* in the legend */
    const char *colour;
    const double *x, *y;
    size_t count;
    int dashed;  /* a line for comparison, without dots */
    int leaving; /* may leave the chart at the top */
} svg_line;

typedef struct svg_chart {
    const char *title, *subtitle, *x_label, *y_label; /* UTF-8, escaped here */
    const svg_line *lines;
    size_t count;
    const double *ticks; /* of the x axis, ascending, from 0; the last is its end */
    size_t tick_count;
    const char *mark; /* what the marked point is; NULL: none */
    double mark_x, mark_y;
} svg_chart;

/* The text (free) and its length, or NULL: no memory. */
char *svg_draw(const svg_chart *c, size_t *length);

#endif
