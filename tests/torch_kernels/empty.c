/* A library that has a name and nothing else. */
typedef int nothing;
