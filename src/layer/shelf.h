/* Memory of prepared weights: they lie side by side in blocks that the system makes of huge pages where it
 * has them, so that a pass over the weights of a model needs some tens of addresses translated, not ten
 * thousand. */
#ifndef LAYER_SHELF_H
#define LAYER_SHELF_H

#include <stddef.h>

/* A block; counted by what lies in it. */
typedef struct khub__shelf khub__shelf;

/* A smaller one has its own memory: there an address sanitizer sees what goes past its end. */
enum { KHUB__SHELF_LEAST = 128 << 10 };

/* `bytes` at a multiple of 64: in *last while there is room, else in a new block, which becomes *last. It is
 * a use of *on. NULL: no memory. */
void *khub__shelf_take(khub__shelf **on, khub__shelf **last, size_t bytes);

void khub__shelf_give_up(khub__shelf *shelf); /* one use, *last's being one; NULL is a no-op */

#endif
