/* Paints an example dataset: JPEG files that look like small photographs, in eight class folders.
 *
 *   make_photos FOLDER [PER_CLASS [SEED]]
 *
 * The same arguments give the same pixels everywhere: integers, and floating point without library functions. Existing
 * files are replaced. Only for demonstrations and tests; shardpack does not need it. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>

typedef struct rgb {
    float r, g, b;
} rgb;

typedef struct photo {
    int width, height;
    uint64_t seed; /* of the photo's textures */
    uint64_t rng;  /* state of draws */
    rgb *pixels;
} photo;

/* ---- numbers ---- */

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* The next draw in [low, high). */
static float draw(photo *p, float low, float high)
{
    p->rng += 0x9E3779B97F4A7C15u;
    return low + (high - low) * (float)(mix(p->rng) >> 40) / 16777216.0f;
}

static int whole(float x)
{
    int i = (int)x;
    return (float)i > x ? i - 1 : i;
}

static float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static float smooth(float x)
{
    x = clamp(x, 0, 1);
    return x * x * (3 - 2 * x);
}

static rgb blend(rgb a, rgb b, float t)
{
    t = clamp(t, 0, 1);
    return (rgb){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static rgb shade(rgb c, float by)
{
    return (rgb){c.r * by, c.g * by, c.b * by};
}

static float lattice(uint64_t seed, int x, int y)
{
    uint64_t h = mix(seed + (uint64_t)(uint32_t)x * 0x9E3779B97F4A7C15u + (uint64_t)(uint32_t)y * 0xC2B2AE3D27D4EB4Fu);
    return (float)(h >> 40) / 16777216.0f;
}

/* Value noise in [0, 1): random numbers on a grid, smoothly joined. */
static float noise(uint64_t seed, float x, float y)
{
    int ix = whole(x), iy = whole(y);
    float fx = smooth(x - (float)ix), fy = smooth(y - (float)iy);
    float top = lattice(seed, ix, iy) * (1 - fx) + lattice(seed, ix + 1, iy) * fx;
    float bottom = lattice(seed, ix, iy + 1) * (1 - fx) + lattice(seed, ix + 1, iy + 1) * fx;
    return top * (1 - fy) + bottom * fy;
}

/* Noise with finer detail added octave by octave. */
static float texture(uint64_t seed, float x, float y, int octaves)
{
    float sum = 0, weight = 0.5f, total = 0;
    for (int i = 0; i < octaves; i++) {
        sum += weight * noise(seed + (uint64_t)i, x, y);
        total += weight;
        weight *= 0.5f;
        x *= 2;
        y *= 2;
    }
    return sum / total;
}

/* ---- scenes: colour of the point (x, y), both in [0, 1) down and right ---- */

static rgb *at(photo *p, int x, int y)
{
    return &p->pixels[(size_t)y * (size_t)p->width + (size_t)x];
}

static void put(photo *p, int x, int y, rgb c, float opacity)
{
    if (x >= 0 && y >= 0 && x < p->width && y < p->height)
        *at(p, x, y) = blend(*at(p, x, y), c, opacity);
}

static void sky(photo *p, rgb top, rgb bottom, float clouds)
{
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float u = (float)x / (float)p->width, v = (float)y / (float)p->height;
            float cloud = texture(p->seed, u * 4, v * 9, 5);
            rgb c = blend(top, bottom, v * 1.6f);
            *at(p, x, y) = blend(c, (rgb){0.97f, 0.97f, 0.98f}, smooth((cloud - 0.5f) * 4) * clouds);
        }
}

/* A ball lit from the upper left; in pixels. */
static void ball(photo *p, float cx, float cy, float radius, rgb colour, float gloss)
{
    for (int y = whole(cy - radius); y <= whole(cy + radius) + 1; y++)
        for (int x = whole(cx - radius); x <= whole(cx + radius) + 1; x++) {
            float dx = ((float)x - cx) / radius, dy = ((float)y - cy) / radius, d2 = dx * dx + dy * dy;
            float hx = dx + 0.35f, hy = dy + 0.4f, light = 1.15f - 0.75f * (hx * hx + hy * hy) * 0.55f;
            float spot = gloss * smooth(1 - (hx * hx + hy * hy) * 14);
            float skin = 0.92f + 0.16f * texture(p->seed + 7, (float)x / 9, (float)y / 9, 3);
            rgb c = blend(shade(colour, light * skin), (rgb){1, 1, 1}, spot);
            put(p, x, y, c, clamp((1 - d2) * radius / 2, 0, 1));
        }
}

static void beach(photo *p)
{
    float horizon = draw(p, 0.3f, 0.5f), shore = horizon + draw(p, 0.15f, 0.3f), slope = draw(p, -0.15f, 0.15f);
    sky(p, (rgb){0.25f, 0.55f, 0.92f}, (rgb){0.75f, 0.88f, 0.98f}, draw(p, 0, 1));
    for (int y = whole(horizon * (float)p->height); y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float u = (float)x / (float)p->width, v = (float)y / (float)p->height;
            float wave = texture(p->seed + 1, u * 6, (v - horizon) * 60 / (0.2f + v), 4);
            float edge = shore + slope * (u - 0.5f) + 0.05f * noise(p->seed + 2, u * 5, 0);
            float grain = texture(p->seed + 3, u * 60, v * 60, 3);
            rgb sea = blend((rgb){0.02f, 0.3f, 0.5f}, (rgb){0.2f, 0.7f, 0.72f}, wave * 0.7f + (v - horizon));
            rgb sand = blend((rgb){0.72f, 0.6f, 0.42f}, (rgb){0.95f, 0.86f, 0.66f}, grain);
            rgb c = blend(sea, sand, smooth((v - edge) * 60));
            float foam = 1 - clamp((v - edge) * (v - edge) * 4000, 0, 1);
            *at(p, x, y) = blend(c, (rgb){1, 1, 1}, foam * wave * 1.3f);
        }
}

static void bricks(photo *p)
{
    float rows = draw(p, 7, 14), h = (float)p->height / rows, w = h * draw(p, 2, 2.8f), joint = 0.06f;
    rgb dark = {draw(p, 0.4f, 0.55f), 0.2f, 0.15f}, light = {draw(p, 0.65f, 0.8f), 0.38f, 0.28f};
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            int row = whole((float)y / h);
            float along = (float)x / w + ((row & 1) ? 0.5f : 0);
            int column = whole(along);
            float fx = along - (float)column, fy = (float)y / h - (float)row;
            float rough = texture(p->seed, (float)x / 6, (float)y / 6, 4);
            rgb c = blend(dark, light, lattice(p->seed + 5, column, row) * 0.7f + rough * 0.4f);
            if (fx < joint * 0.5f || fy < joint)
                c = blend((rgb){0.55f, 0.53f, 0.5f}, (rgb){0.8f, 0.78f, 0.74f}, rough);
            *at(p, x, y) = c;
        }
}

static void tower(photo *p, float left, float width, float top)
{
    rgb wall = shade((rgb){0.5f, 0.55f, 0.62f}, draw(p, 0.5f, 1.2f));
    uint64_t seed = p->seed + (uint64_t)(left * 1000);
    for (int y = whole(top * (float)p->height); y < p->height; y++)
        for (int x = whole(left * (float)p->width); x < whole((left + width) * (float)p->width); x++) {
            int cx = x / 7, cy = y / 9, window = x % 7 > 1 && y % 9 > 3;
            float lit = lattice(seed, cx, cy);
            rgb glass = lit > 0.8f ? (rgb){1, 0.88f, 0.55f} : shade((rgb){0.3f, 0.42f, 0.55f}, 0.6f + lit);
            float dirt = 0.85f + 0.3f * texture(p->seed, (float)x / 14, (float)y / 14, 3);
            put(p, x, y, shade(window ? glass : wall, dirt), 1);
        }
}

static void city(photo *p)
{
    sky(p, (rgb){0.55f, 0.6f, 0.68f}, (rgb){0.85f, 0.82f, 0.78f}, 0.5f);
    for (float left = -0.05f; left < 1;) {
        float width = draw(p, 0.08f, 0.2f);
        tower(p, left, width, draw(p, 0.1f, 0.6f));
        left += width * draw(p, 0.8f, 1.05f);
    }
}

static void flower(photo *p)
{
    static const rgb petals[] = {{0.95f, 0.3f, 0.5f}, {0.98f, 0.85f, 0.2f}, {0.7f, 0.4f, 0.9f}, {0.98f, 0.97f, 0.95f}};
    float size = (float)(p->width < p->height ? p->width : p->height);
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float blur = texture(p->seed, (float)x / 50, (float)y / 50, 2);
            float blade = texture(p->seed + 1, (float)x / 5, (float)y / 30, 3);
            *at(p, x, y) = blend((rgb){0.08f, 0.25f, 0.07f}, (rgb){0.45f, 0.7f, 0.25f}, blur * 0.6f + blade * 0.5f);
        }
    for (int n = 0; n < 4; n++) {
        rgb petal = petals[(int)draw(p, 0, 4) & 3];
        float cx = draw(p, 0.15f, 0.85f) * (float)p->width, cy = draw(p, 0.15f, 0.85f) * (float)p->height;
        float r = draw(p, 0.1f, 0.2f) * size;
        /* Directions by thirds and quarters of a turn, without a sine. */
        static const float dir[8][2] = {{1, 0},  {0.7f, 0.7f},   {0, 1},  {-0.7f, 0.7f},
                                        {-1, 0}, {-0.7f, -0.7f}, {0, -1}, {0.7f, -0.7f}};
        for (int i = 0; i < 8; i++)
            ball(p, cx + dir[i][0] * r, cy + dir[i][1] * r, r * 0.55f, petal, 0);
        ball(p, cx, cy, r * 0.6f, (rgb){0.75f, 0.5f, 0.1f}, 0.2f);
    }
}

static void forest(photo *p)
{
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float u = (float)x / (float)p->width, v = (float)y / (float)p->height;
            float leaves = texture(p->seed, u * 14, v * 14, 6);
            rgb c = blend((rgb){0.03f, 0.1f, 0.03f}, (rgb){0.3f, 0.5f, 0.15f}, leaves * 1.6f - 0.3f);
            c = blend(c, (rgb){0.85f, 0.95f, 0.7f}, smooth((leaves - 0.68f) * 8) * (1 - v));
            *at(p, x, y) = blend(c, (rgb){0.3f, 0.22f, 0.12f}, smooth((v - 0.8f) * 5) * 0.8f);
        }
    int trunks = (int)draw(p, 4, 10);
    for (int n = 0; n < trunks; n++) {
        float cx = draw(p, 0, 1) * (float)p->width, half = draw(p, 0.01f, 0.045f) * (float)p->width,
              lean = draw(p, -0.1f, 0.1f);
        for (int y = 0; y < p->height * 9 / 10; y++)
            for (int x = whole(cx - half * 2); x < whole(cx + half * 2); x++) {
                float d = ((float)x - cx - lean * (float)y) / half;
                float bark = texture(p->seed + 9, (float)x / 3, (float)y / 16, 4);
                rgb c = shade((rgb){0.36f, 0.26f, 0.18f}, (0.5f + bark) * (1 - 0.45f * d));
                put(p, x, y, c, clamp((1 - d * d) * 3, 0, 1));
            }
    }
}

static void fruit(photo *p)
{
    static const rgb skins[] = {
        {0.85f, 0.12f, 0.1f}, {0.98f, 0.55f, 0.08f}, {0.55f, 0.75f, 0.15f}, {0.95f, 0.8f, 0.15f}};
    float size = (float)(p->width < p->height ? p->width : p->height);
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float grain = texture(p->seed, (float)x / 60, (float)y / 5, 5), v = (float)y / (float)p->height;
            rgb table = blend((rgb){0.38f, 0.24f, 0.14f}, (rgb){0.68f, 0.48f, 0.3f}, grain);
            *at(p, x, y) = blend((rgb){0.86f, 0.84f, 0.8f}, table, smooth((v - 0.3f) * 12));
        }
    for (int n = 0; n < 6; n++) {
        float r = draw(p, 0.11f, 0.2f) * size, cx = draw(p, 0.1f, 0.9f) * (float)p->width;
        float cy = (0.35f + 0.1f * (float)n) * (float)p->height;
        ball(p, cx + r * 0.3f, cy + r * 0.25f, r, (rgb){0.15f, 0.1f, 0.06f}, 0);
        ball(p, cx, cy, r, skins[(int)draw(p, 0, 4) & 3], 0.8f);
    }
}

static void mountain(photo *p)
{
    sky(p, (rgb){0.35f, 0.55f, 0.85f}, (rgb){0.88f, 0.9f, 0.95f}, draw(p, 0.2f, 0.9f));
    for (int ridge = 0; ridge < 3; ridge++) {
        float base = 0.25f + 0.2f * (float)ridge, tall = draw(p, 0.25f, 0.4f);
        uint64_t seed = p->seed + 20 + (uint64_t)ridge;
        for (int x = 0; x < p->width; x++) {
            float u = (float)x / (float)p->width, crest = base + tall * (0.5f - texture(seed, u * 4, 0.5f, 6));
            for (int y = whole(crest * (float)p->height); y < p->height; y++) {
                float v = (float)y / (float)p->height;
                float rock = texture(seed, u * 22 + v * 8, v * 26, 5);
                rgb c = blend((rgb){0.2f, 0.22f, 0.27f}, (rgb){0.55f, 0.52f, 0.5f}, rock);
                c = blend(c, (rgb){0.97f, 0.98f, 1},
                          smooth((0.12f - (v - crest) + 0.15f * (rock - 0.5f)) * 16) * (ridge < 2));
                put(p, x, y, blend(c, (rgb){0.75f, 0.82f, 0.92f}, 0.5f - 0.25f * (float)ridge), 1);
            }
        }
    }
}

static void night(photo *p)
{
    float size = (float)(p->width < p->height ? p->width : p->height);
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float haze = texture(p->seed, (float)x / 80, (float)y / 80, 6), v = (float)y / (float)p->height;
            rgb c = blend((rgb){0.01f, 0.01f, 0.06f}, (rgb){0.12f, 0.1f, 0.28f}, haze * v * 1.5f);
            *at(p, x, y) = shade(c, 0.9f + 0.2f * lattice(p->seed + 3, x, y));
        }
    int stars = p->width * p->height / 400;
    for (int n = 0; n < stars; n++) {
        int x = (int)draw(p, 0, (float)p->width), y = (int)draw(p, 0, (float)p->height);
        float bright = draw(p, 0.2f, 1);
        put(p, x, y, (rgb){1, 0.97f, 0.9f}, bright);
        put(p, x + 1, y, (rgb){1, 0.97f, 0.9f}, bright * 0.4f);
        put(p, x, y + 1, (rgb){1, 0.97f, 0.9f}, bright * 0.4f);
    }
    ball(p, draw(p, 0.2f, 0.8f) * (float)p->width, draw(p, 0.15f, 0.5f) * (float)p->height,
         draw(p, 0.07f, 0.16f) * size, (rgb){0.92f, 0.9f, 0.8f}, 0);
}

static const struct scene {
    const char *name;
    void (*paint)(photo *p);
} scenes[] = {{"beach", beach},   {"bricks", bricks}, {"city", city},         {"flower", flower},
              {"forest", forest}, {"fruit", fruit},   {"mountain", mountain}, {"night", night}};

/* ---- files ---- */

/* Light of the hour, a darker rim and sensor noise; then eight bits. */
static unsigned char *develop(photo *p)
{
    size_t n = (size_t)p->width * (size_t)p->height;
    unsigned char *out = malloc(n * 3);
    float exposure = draw(p, 0.8f, 1.15f), warmth = draw(p, -0.06f, 0.06f), grain = draw(p, 0.02f, 0.06f);
    for (size_t i = 0; out && i < n; i++) {
        int x = (int)(i % (size_t)p->width), y = (int)(i / (size_t)p->width);
        float u = (float)x / (float)p->width - 0.5f, v = (float)y / (float)p->height - 0.5f;
        float light = exposure * (1.05f - 0.5f * (u * u + v * v));
        float dust = grain * (lattice(p->seed + 99, x, y) - 0.5f);
        float c[3] = {p->pixels[i].r * (1 + warmth), p->pixels[i].g, p->pixels[i].b * (1 - warmth)};
        for (int k = 0; k < 3; k++)
            out[i * 3 + (size_t)k] = (unsigned char)clamp((c[k] * light + dust) * 255.0f + 0.5f, 0, 255);
    }
    return out;
}

/* libjpeg's own error handler ends the program, which suits an example. */
static int write_jpeg(const char *path, const photo *p, unsigned char *pixels, int quality)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct jpeg;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)p->width;
    jpeg.image_height = (JDIMENSION)p->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = pixels + (size_t)jpeg.next_scanline * (size_t)p->width * 3;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return fclose(file);
}

static int make_photo(const char *folder, const struct scene *scene, int number, uint64_t seed)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s_%04d.jpg", folder, scene->name, scene->name, number);
    photo p = {.seed = mix(seed * 1000003u + (uint64_t)number * 31u + (uint64_t)(scene - scenes))};
    p.rng = p.seed;
    p.width = (int)draw(&p, 160, 420);
    p.height = (int)draw(&p, 160, 420);
    p.pixels = calloc((size_t)p.width * (size_t)p.height, sizeof *p.pixels);
    if (!p.pixels)
        return -1;
    scene->paint(&p);
    int quality = (int)draw(&p, 82, 93);
    unsigned char *pixels = develop(&p);
    int rc = pixels ? write_jpeg(path, &p, pixels, quality) : -1;
    if (rc)
        fprintf(stderr, "make_photos: %s: %s\n", path, strerror(errno));
    free(pixels);
    free(p.pixels);
    return rc;
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    fprintf(stderr, "make_photos: %s: %s\n", path, strerror(errno));
    return -1;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        fprintf(stderr, "usage: make_photos FOLDER [PER_CLASS [SEED]]\n");
        return 2;
    }
    int per_class = argc > 2 ? atoi(argv[2]) : 40;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (make_folder(argv[1]))
        return 1;
    for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/%s", argv[1], scenes[s].name);
        if (make_folder(folder))
            return 1;
        for (int i = 0; i < per_class; i++)
            if (make_photo(argv[1], &scenes[s], i, seed))
                return 1;
    }
    return 0;
}
