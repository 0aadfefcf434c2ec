/* Threads for what waits for the disk, so that the threads of the network don't. */
#ifndef SERVE_WORK_H
#define SERVE_WORK_H

typedef struct serve_job serve_job;
struct serve_job {
    void (*run)(serve_job *job);
    serve_job *next; /* of the queue */
};

int serve_work_start(void); /* 0, or an errno */

/* Runs the job on one of the threads, soon. After serve_work_stop it is run by the caller. */
void serve_work_add(serve_job *job);

/* Runs what waits, and ends the threads. */
void serve_work_stop(void);

#endif
