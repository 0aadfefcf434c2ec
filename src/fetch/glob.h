/* The patterns of downloads. */
#ifndef FETCH_GLOB_H
#define FETCH_GLOB_H

/* 1 when `pattern` takes the whole of `path`: "*" any bytes, "/" too; "?" one byte; "[a-z]", "[!a-z]" one of
 * a set; a pattern that ends in "/" takes all below that folder. As Python's fnmatch, which the other Hugging
 * Face tools use. */
int khub__glob(const char *pattern, const char *path);

#endif
