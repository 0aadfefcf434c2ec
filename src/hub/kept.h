/* Engines that no client uses at the moment, with their open connections. Any thread. */
#ifndef HUB_KEPT_H
#define HUB_KEPT_H

#include "hub/engine.h"

/* One for the same endpoint and token, opened in this process; NULL: there is none. */
khub__engine *khub__kept_take(const khub__hub_settings *settings);

/* Keeps it. Returns the one that is kept no longer in its place, NULL: there was room. */
khub__engine *khub__kept_put(khub__engine *engine);

#endif
