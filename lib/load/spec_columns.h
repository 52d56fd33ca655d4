/* Private to load/: the columns of a spec and where they lie in a slot. */
#ifndef SPK_LOAD_SPEC_COLUMNS_H
#define SPK_LOAD_SPEC_COLUMNS_H

#include "load/spec.h"

/* Checks and copies the columns of the options, or makes the default ones. */
SPK_CHECK spk_status spk_spec_columns(spk_load_spec *s, const spk_dataset *dataset, const spk_loader_options *o,
                                      spk_error *err);
/* True if some sample has the field, or there is none that could. */
bool spk_spec_has_field(const spk_dataset *dataset, const char *name);
/* Shapes, offsets and sizes of a slot. LIMIT if a slot would be larger than can be. */
SPK_CHECK spk_status spk_spec_layout(spk_load_spec *s, const spk_dataset *dataset, spk_error *err);

#endif
