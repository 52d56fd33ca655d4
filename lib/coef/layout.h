/* Private to coef/: where the streams of a blob are (format-spec/jpeg_coefficients.md, section 4). */
#ifndef SPK_COEF_LAYOUT_H
#define SPK_COEF_LAYOUT_H

#include <stdint.h>

/* A block's class: 0 if it has nothing but DC, else 1 + its last place in zigzag order / 16. */
#define SPK_COEF_CLASSES 5u
#define SPK_COEF_BANDS 4u  /* places 1 to 7, 8 to 15, 16 to 31, 32 to 63 */
#define SPK_COEF_LISTS 13u /* pairs of band and class that there are */
#define SPK_COEF_BYTES 9u  /* the way of a list whose levels are bytes; 0 to 4: nibbles and that many lower bits */
#define SPK_COEF_LOWS_MAX 4u
#define SPK_COEF_ESCAPE (-128)

/* Streams of a kind of component, luma or chroma, in this order. */
enum {
    SPK_COEF_DC_HIGH = 0,
    SPK_COEF_DC_LOW = 1,
    SPK_COEF_DC_ESCAPE = 2,
    SPK_COEF_CLASS = 3,
    SPK_COEF_MASK = 4,                                       /* + 0 to 19 */
    SPK_COEF_LEVEL = SPK_COEF_MASK + 20,                     /* + number of the list */
    SPK_COEF_LOW = SPK_COEF_LEVEL + (int)SPK_COEF_LISTS,     /* + number of the list */
    SPK_COEF_AC_ESCAPE = SPK_COEF_LOW + (int)SPK_COEF_LISTS, /* + class - 1 */
    SPK_COEF_STREAMS = SPK_COEF_AC_ESCAPE + 4
};

/* Bands that blocks of a class have. */
static inline uint32_t spk_coef_bands(uint32_t cls)
{
    return cls == 0 ? 0 : cls < 3 ? cls + 1 : 4;
}

/* Band of the places 8 g to 8 g + 7. */
static inline uint32_t spk_coef_band(uint32_t g)
{
    return g < 2 ? g : g < 4 ? 2 : 3;
}

/* Number of the list of a band and a class: by band, then by class. */
static inline uint32_t spk_coef_list(uint32_t band, uint32_t cls)
{
    static const uint8_t first[SPK_COEF_BANDS] = {0, 4, 8, 11}; /* of the least class that has the band */
    return first[band] + cls - (band < 2 ? 1 : band);
}

/* The first of the 2 * class mask streams of a class. */
static inline uint32_t spk_coef_mask(uint32_t cls)
{
    return SPK_COEF_MASK + cls * (cls - 1);
}

extern const uint8_t spk_coef_zigzag[64]; /* place in zigzag order to place by rows */

#endif
