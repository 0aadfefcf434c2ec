#ifndef PUBLISH_LIMITED_API_H
#define PUBLISH_LIMITED_API_H

/* The version of Python ("3.2") whose limited API has a function or datum first; NULL: it isn't in there. */
const char *khub__limited_api_added(const char *name);

#endif
