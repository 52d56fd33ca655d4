/* Private to image/: libjpeg's errors as spk_error. libjpeg reports corruption mostly as warnings and goes on with
 * grey; here each one ends the image. Use:
 *
 *     spk_jpeg_trap_arm(trap, size of the file, err);
 *     if (setjmp(trap->jump) == 0)
 *         status = calls of libjpeg;
 *     else
 *         status = trap->status;
 */
#ifndef SPK_IMAGE_JPEG_TRAP_H
#define SPK_IMAGE_JPEG_TRAP_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h> /* before jpeglib.h, which needs size_t and FILE */

#include <jpeglib.h>

#include "base/error.h"

typedef struct spk_jpeg_trap {
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct *jpeg;
    jmp_buf jump;
    size_t file_bytes;
    spk_status status;
    spk_error *err;
    bool created;
} spk_jpeg_trap;

/* Creates *jpeg with its errors going to *trap; both at addresses that stay. Undo with spk_jpeg_trap_destroy, also
 * after a failure. */
SPK_CHECK spk_status spk_jpeg_trap_create(spk_jpeg_trap *trap, struct jpeg_decompress_struct *jpeg, spk_error *err);
void spk_jpeg_trap_destroy(spk_jpeg_trap *trap);
/* Before each setjmp. */
void spk_jpeg_trap_arm(spk_jpeg_trap *trap, size_t file_bytes, spk_error *err);
/* Starts afresh and reads the header of a file of file_bytes bytes, with little memory. Armed only. */
void spk_jpeg_trap_header(spk_jpeg_trap *trap, const void *data);
/* After the header was read: bounds what it makes libjpeg allocate, before it does. */
SPK_CHECK spk_status spk_jpeg_trap_limit(spk_jpeg_trap *trap);

#endif
