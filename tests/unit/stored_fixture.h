/* What tests of JPEG stored as coefficients have: one of each that makes, reads and decodes the stored form. */
#ifndef STORED_FIXTURE_H
#define STORED_FIXTURE_H

#include "base/error.h"
#include "coef/coef.h"
#include "image/decoder.h"
#include "image/transcode.h"
#include "jpeg_variants.h"

static spk_transcoder *transcoder;
static spk_coef_reader *reader;
static spk_decoder *decoder;
static spk_buf blob, file;
static spk_error err;
static spk_rng rng;
static bool long_run;

static void stored_setup(uint64_t seed)
{
    spk_error_clear(&err);
    ck_ok(spk_transcoder_new(&transcoder, &err), err);
    ck_ok(spk_coef_reader_new(&reader, &err), err);
    ck_ok(spk_decoder_new(&decoder, &err), err);
    rng = (spk_rng){seed, 1, 0};
    long_run = getenv("TEST_LONG") != NULL;
}

static void teardown(void)
{
    spk_transcoder_free(transcoder);
    spk_coef_reader_free(reader);
    spk_decoder_free(decoder);
    spk_buf_free(&blob);
    spk_buf_free(&file);
}

static inline uint32_t pick(uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(&rng, high - low + 1);
}

#endif
