/* The commands. To add one: write cmd_NAME.c with a `const command cmd_NAME`, name it here, and give it a row in
 * main.c. Help, manual and completions follow from its tables; tests/cli/help/ holds their expected text. */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#include "opts.h"

extern const tool_info tool; /* main.c */
extern const topic topics[]; /* topics.c */

extern const command cmd_bench;
extern const command cmd_cache;
extern const command cmd_cat;
extern const command cmd_export;
extern const command cmd_extract;
extern const command cmd_help;
extern const command cmd_info;
extern const command cmd_ls;
extern const command cmd_mirror;
extern const command cmd_pack;
extern const command cmd_prune;
extern const command cmd_repack;
extern const command cmd_stream;
extern const command cmd_verify;

/* Row of the table with this name, or NULL. */
const command *cmd_find(const char *name);
/* Reports an unknown command, with the nearest one. Returns the exit status. */
int cmd_unknown(const char *name);

#endif
