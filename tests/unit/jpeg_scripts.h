/* Files of several scans, as tests of JPEG make them: scripts for libjpeg, progressive and not, and the layouts of
 * images that they are tried with. */
#ifndef JPEG_SCRIPTS_H
#define JPEG_SCRIPTS_H

#include <stdbool.h>

#include "jpeg_variants.h"

#define ALL                                                                                                            \
    3,                                                                                                                 \
    {                                                                                                                  \
        0, 1, 2                                                                                                        \
    }
#define ONE(c)                                                                                                         \
    1,                                                                                                                 \
    {                                                                                                                  \
        c                                                                                                              \
    }

static const jpeg_scan_info bands[] = {
    {ALL, 0, 0, 0, 0}, {ONE(0), 1, 5, 0, 0}, {ONE(2), 1, 63, 0, 0}, {ONE(1), 1, 63, 0, 0}, {ONE(0), 6, 63, 0, 0}};
static const jpeg_scan_info bits[] = {
    {ALL, 0, 0, 0, 3},     {ONE(0), 1, 63, 0, 3}, {ONE(1), 1, 63, 0, 3}, {ONE(2), 1, 63, 0, 3},
    {ALL, 0, 0, 3, 2},     {ONE(0), 1, 63, 3, 2}, {ONE(1), 1, 63, 3, 2}, {ONE(2), 1, 63, 3, 2},
    {ALL, 0, 0, 2, 1},     {ALL, 0, 0, 1, 0},     {ONE(0), 1, 63, 2, 1}, {ONE(1), 1, 63, 2, 1},
    {ONE(2), 1, 63, 2, 1}, {ONE(0), 1, 63, 1, 0}, {ONE(1), 1, 63, 1, 0}, {ONE(2), 1, 63, 1, 0}};
static const jpeg_scan_info dc_alone[] = {
    {ONE(0), 0, 0, 0, 1},   {ONE(1), 0, 0, 0, 0}, {ONE(2), 0, 0, 0, 0},  {ONE(0), 1, 20, 0, 2}, {ONE(0), 1, 20, 2, 1},
    {ONE(0), 21, 63, 0, 1}, {ONE(0), 0, 0, 1, 0}, {ONE(0), 1, 63, 1, 0}, {ONE(1), 1, 63, 0, 0}, {ONE(2), 1, 63, 0, 0}};
static const jpeg_scan_info narrow[] = {{ALL, 0, 0, 0, 0},      {ONE(0), 1, 1, 0, 0},  {ONE(0), 2, 2, 0, 4},
                                        {ONE(0), 3, 63, 0, 0},  {ONE(0), 2, 2, 4, 3},  {ONE(0), 2, 2, 3, 2},
                                        {ONE(0), 2, 2, 2, 1},   {ONE(0), 2, 2, 1, 0},  {ONE(1), 1, 62, 0, 0},
                                        {ONE(1), 63, 63, 0, 0}, {ONE(2), 1, 32, 0, 0}, {ONE(2), 33, 63, 0, 0}};
static const jpeg_scan_info in_turn[] = {{ONE(0), 0, 63, 0, 0}, {ONE(1), 0, 63, 0, 0}, {ONE(2), 0, 63, 0, 0}};
static const jpeg_scan_info two_and_one[] = {{2, {0, 1}, 0, 63, 0, 0}, {ONE(2), 0, 63, 0, 0}};
static const jpeg_scan_info chroma_first[] = {{2, {1, 2}, 0, 63, 0, 0}, {ONE(0), 0, 63, 0, 0}};
static const jpeg_scan_info gray_bits[] = {{ONE(0), 0, 0, 0, 1},  {ONE(0), 1, 9, 0, 2}, {ONE(0), 10, 63, 0, 2},
                                           {ONE(0), 1, 63, 2, 1}, {ONE(0), 0, 0, 1, 0}, {ONE(0), 1, 63, 1, 0}};
static const jpeg_scan_info unfinished[] = {
    {ALL, 0, 0, 0, 0}, {ONE(0), 1, 63, 0, 0}, {ONE(1), 1, 63, 0, 1}, {ONE(2), 1, 63, 0, 0}};
static const jpeg_scan_info luma_alone[] = {{ALL, 0, 0, 0, 0}, {ONE(0), 1, 63, 0, 0}};

#define SCRIPT(s) s, (int)(sizeof(s) / sizeof *(s))
typedef struct script {
    const jpeg_scan_info *scan;
    int scans;
    bool gray, progressive;
} script;
static const script scripts[] = {{NULL, 0, false, true},
                                 {SCRIPT(bands), false, true},
                                 {SCRIPT(bits), false, true},
                                 {SCRIPT(dc_alone), false, true},
                                 {SCRIPT(narrow), false, true},
                                 {SCRIPT(in_turn), false, false},
                                 {SCRIPT(two_and_one), false, false},
                                 {SCRIPT(chroma_first), false, false},
                                 {NULL, 0, true, true},
                                 {SCRIPT(gray_bits), true, true}};
#define SCRIPTS (sizeof scripts / sizeof *scripts)

static const struct {
    J_COLOR_SPACE stored;
    int h, v;
} layouts[] = {{JCS_YCbCr, 2, 2}, {JCS_YCbCr, 2, 1}, {JCS_YCbCr, 1, 2}, {JCS_YCbCr, 1, 1}, {JCS_RGB, 1, 1}};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

static inline jpeg_variant variant_of(const script *s, size_t layout)
{
    jpeg_variant v = {0};
    v.stored = s->gray ? JCS_GRAYSCALE : layouts[layout].stored;
    v.h = s->gray ? 1 : layouts[layout].h;
    v.v = s->gray ? 1 : layouts[layout].v;
    v.quality = 75;
    v.progressive = s->progressive;
    return v;
}

#endif
