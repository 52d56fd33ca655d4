/* A JPEG file as progressive one with libjpeg's own script: other scans, the same coefficients (jpegtran -progressive).
 */
#ifndef JPEG_PROGRESSIVE_H
#define JPEG_PROGRESSIVE_H

#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

/* libjpeg ends the program, with a message, for a file that it cannot read. */
static inline unsigned char *make_progressive(const unsigned char *data, size_t n, size_t *size)
{
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long bytes = 0;
    from.err = to.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&from);
    jpeg_create_compress(&to);
    jpeg_mem_src(&from, data, (unsigned long)n);
    jpeg_mem_dest(&to, &out, &bytes);
    jpeg_read_header(&from, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&from);
    jpeg_copy_critical_parameters(&from, &to);
    jpeg_simple_progression(&to);
    jpeg_write_coefficients(&to, coefficients);
    jpeg_finish_compress(&to);
    jpeg_finish_decompress(&from);
    jpeg_destroy_compress(&to);
    jpeg_destroy_decompress(&from);
    *size = bytes;
    return out;
}

#endif
