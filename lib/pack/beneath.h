/* Opening a file by a path that must stay below a folder. No state. */
#ifndef SPK_PACK_BENEATH_H
#define SPK_PACK_BENEATH_H

/* openat(2) that follows no symbolic link, in no component of the path; path is relative and has no "..". -1 with errno
 * on failure: ELOOP if there is a link. */
int spk_open_beneath(int dirfd, const char *path, int flags);

#endif
