/* The file that this code is in. One source per operating system. */
#ifndef BASE_SELF_H
#define BASE_SELF_H

/* Its path from the root on, without links, "/" between its parts; *is_program: it is this program, not a
 * library in it. The C library's memory (free); NULL: unknown. */
char *khub__own_file(int *is_program);

#endif
