/* Looks through all of DIR before anyone asks, so that nobody has to wait for files to be hashed. */
#ifndef SERVE_WARM_H
#define SERVE_WARM_H

/* Looks at one repository after the other; returns when all are known, or soon after serve_warm_stop. */
void serve_warm(void);
void serve_warm_stop(void);

#endif
