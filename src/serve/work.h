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

/* What happened so far; for serve_work_again. */
unsigned serve_work_moment(void);

/* Runs the job again once serve_work_wake is called, or at once if it was since `moment`. 0: the threads have
 * ended, and the job is still the caller's. */
int serve_work_again(serve_job *job, unsigned moment);

/* Something ended that a job may be waiting for. */
void serve_work_wake(void);

/* Runs what waits, and ends the threads. */
void serve_work_stop(void);

#endif
