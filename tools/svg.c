/* SVG by hand: one chart of 720 x 440, in plain shapes that every viewer draws alike. */
#include "svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "out.h"

#define WIDTH 720.0
#define HEIGHT 440.0
#define LEFT 84.0
#define RIGHT 24.0
#define TOP 104.0
#define BOTTOM 58.0
#define TICKS 6        /* of the y axis, about */
#define TICK_ROOM 26.0 /* between the numbers below the x axis */
#define LEGEND 80.0    /* its height on the page */
#define LETTER 7.2     /* width of one, about */

typedef struct scale {
    double x1, y1, step; /* both begin at 0 */
} scale;

static double px(const scale *s, double x)
{
    return LEFT + x / s->x1 * (WIDTH - LEFT - RIGHT);
}

static double py(const scale *s, double y)
{
    return HEIGHT - BOTTOM - y / s->y1 * (HEIGHT - TOP - BOTTOM);
}

/* The distance of round numbers: 1, 2 or 5 times a power of ten. */
static double round_step(double most)
{
    double raw = most / TICKS, unit = pow(10, floor(log10(raw)));
    double times = raw / unit;
    return unit * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static scale make_scale(const svg_chart *c)
{
    double most = 0;
    scale s = {.x1 = c->ticks[c->tick_count - 1]};
    if (s.x1 <= 0)
        s.x1 = 1;
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; !c->lines[i].leaving && k < c->lines[i].count; k++)
            most = c->lines[i].y[k] > most ? c->lines[i].y[k] : most;
    most = most > 0 ? most * 1.12 : 1;
    s.step = round_step(most);
    s.y1 = ceil(most / s.step) * s.step;
    return s;
}

static void put_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        default:
            putc((unsigned char)*text < 0x20 ? '?' : *text, f);
        }
}

static void text_at(FILE *f, double x, double y, const char *attributes, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_text(f, text);
    fputs("</text>\n", f);
}

static void draw_y_axis(FILE *f, const svg_chart *c, const scale *s)
{
    char number[32];
    for (double y = 0; y < s->y1 * 1.0001; y += s->step) {
        fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT, py(s, y),
                WIDTH - RIGHT, py(s, y), y > 0 ? "#e4e7eb" : "#52606d");
        if (s->step >= 1)
            out_count(number, sizeof number, (uint64_t)(y + 0.5));
        else
            snprintf(number, sizeof number, "%g", y);
        text_at(f, LEFT - 8, py(s, y) + 4, "text-anchor=\"end\"", number);
    }
    fprintf(f, "<text transform=\"translate(20 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            (TOP + HEIGHT - BOTTOM) / 2);
    put_text(f, c->y_label);
    fputs("</text>\n", f);
}

static void draw_x_axis(FILE *f, const svg_chart *c, const scale *s)
{
    char number[32];
    double last = -TICK_ROOM, end = px(s, s->x1);
    for (size_t i = 0; i < c->tick_count; i++) {
        double x = px(s, c->ticks[i]);
        fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#52606d\"/>\n", x, HEIGHT - BOTTOM,
                x, HEIGHT - BOTTOM + 5);
        if (x - last < TICK_ROOM || (i + 1 < c->tick_count && end - x < TICK_ROOM))
            continue;
        snprintf(number, sizeof number, "%g", c->ticks[i]);
        text_at(f, x, HEIGHT - BOTTOM + 20, "text-anchor=\"middle\"", number);
        last = x;
    }
    text_at(f, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "text-anchor=\"middle\"", c->x_label);
}

static void draw_line(FILE *f, const svg_line *l, const scale *s)
{
    fprintf(f, "<polyline clip-path=\"url(#area)\" fill=\"none\" stroke=\"%s\" %s points=\"", l->colour,
            l->dashed ? "stroke-width=\"1.5\" stroke-dasharray=\"6 5\"" : "stroke-width=\"2.5\"");
    for (size_t i = 0; i < l->count; i++)
        fprintf(f, "%s%.1f,%.1f", i ? " " : "", px(s, l->x[i]), py(s, l->y[i]));
    fputs("\"/>\n", f);
    for (size_t i = 0; !l->dashed && i < l->count; i++)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", px(s, l->x[i]), py(s, l->y[i]),
                l->colour);
}

static void draw_legend(FILE *f, const svg_chart *c, const scale *s)
{
    double x = LEFT;
    for (size_t i = 0; i < c->count; i++) {
        const svg_line *l = &c->lines[i];
        fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"2.5\"%s/>\n", x,
                LEGEND, x + 26, LEGEND, l->colour, l->dashed ? " stroke-dasharray=\"6 5\"" : "");
        text_at(f, x + 32, LEGEND + 4, "", l->name);
        x += 32 + LETTER * (double)out_columns(l->name) + 20;
    }
    if (!c->mark)
        return;
    const double at[2][2] = {{x + 9, LEGEND}, {px(s, c->mark_x), py(s, c->mark_y)}};
    for (size_t i = 0; i < 2; i++)
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"8\" fill=\"none\" stroke=\"#ba2525\" stroke-width=\"2\"/>\n",
                at[i][0], at[i][1]);
    text_at(f, x + 24, LEGEND + 4, "fill=\"#ba2525\"", c->mark);
}

char *svg_draw(const svg_chart *c, size_t *length)
{
    char *text = NULL;
    scale s = make_scale(c);
    FILE *f = open_memstream(&text, length);
    if (!f)
        return NULL;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"13\" fill=\"#323f4b\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(f, "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n");
    fprintf(f, "<clipPath id=\"area\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n", LEFT,
            TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    text_at(f, LEFT, 34, "font-size=\"18\" font-weight=\"bold\" fill=\"#1f2933\"", c->title);
    text_at(f, LEFT, 56, "", c->subtitle);
    draw_y_axis(f, c, &s);
    draw_x_axis(f, c, &s);
    for (size_t i = c->count; i-- > 0;)
        draw_line(f, &c->lines[i], &s);
    draw_legend(f, c, &s);
    fputs("</svg>\n", f);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
