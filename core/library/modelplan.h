/* Places buffers so that no two that are alive together share a byte: modelplan's solver for C and C++.
 *
 * The same solver as `modelplan.place` in Python, and the same answer for the same steps and seed. Every placement is
 * checked by a sweep of its own before it is handed out. No exception crosses these functions, and they keep nothing
 * between calls: several threads may call them at the same time.
 */
#ifndef MODELPLAN_H
#define MODELPLAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Columns with one entry for each buffer, owned by the caller. Buffer k is alive in the steps [start[k], end[k]). */
typedef struct modelplan_buffers {
  size_t count;
  const int64_t *size, *start, *end;
  const int64_t* alignment; /* the offset is a multiple of it; NULL: all 1 */
  const int64_t* pin;       /* the offset that it must have, -1: free; NULL: all free */
  /* Buffers at fixed distances: buffer member[k] stands delta[k] bytes above the base of group[k]. A buffer that is
     dead for a while is a group of its pieces. */
  size_t members;
  const int64_t *member, *group, *delta;
} modelplan_buffers;

typedef struct modelplan_stop modelplan_stop; /* asks a call to end early; it keeps the best so far */

typedef struct modelplan_options {
  int64_t capacity; /* bytes that there are: ends once a placement fits, or none can; -1: the least is asked for */
  int64_t steps;    /* work, in thousands of buffers looked at; repeatable; 0: the default, or none with seconds */
  double seconds;   /* 0: none */
  uint64_t seed;
  int threads;
  const modelplan_stop* stop;                                                 /* NULL: none */
  void (*progress)(void* user, int64_t height, int64_t bound, int64_t steps); /* from the calling thread; NULL */
  void* user;
} modelplan_options;

typedef enum modelplan_ended {
  MODELPLAN_COMPLETE,   /* the method ran through */
  MODELPLAN_OPTIMAL,    /* the height is the bound: no placement is lower */
  MODELPLAN_FITS,       /* the height is within the capacity */
  MODELPLAN_INFEASIBLE, /* proved: no placement is within the capacity */
  MODELPLAN_BUDGET,     /* out of steps; the best so far */
  MODELPLAN_DEADLINE,   /* out of seconds; the best so far */
  MODELPLAN_CANCELLED,  /* modelplan_request_stop was called; the best so far */
  MODELPLAN_MEMORY      /* a table of the search is full; the best so far */
} modelplan_ended;

typedef struct modelplan_result {
  int64_t height; /* bytes of the memory */
  int64_t bound;  /* no placement is lower */
  int64_t steps;
  modelplan_ended ended;
} modelplan_result;

typedef enum modelplan_status {
  MODELPLAN_OK,
  MODELPLAN_INVALID,      /* the buffers make no sense; the message names the first that does not */
  MODELPLAN_NO_PLACEMENT, /* pins, alignments or distances exclude every placement */
  MODELPLAN_REJECTED      /* the check found a clash in what the solver answered: please report it */
} modelplan_status;

/* The options that `modelplan.place` has by default. */
modelplan_options modelplan_default_options(void);

/* Writes an offset for each buffer to `offsets`, unless the status says why not; `message` takes up to `room` bytes.
   `options` may be NULL, `message` too. Time O(count log count) to the first answer. */
modelplan_status modelplan_place(const modelplan_buffers* buffers, const modelplan_options* options, int64_t* offsets,
                                 modelplan_result* result, char* message, size_t room);

/* MODELPLAN_OK where no two buffers that are alive together share a byte and alignments, pins and distances hold, else
   MODELPLAN_REJECTED and a message that names what is wrong. */
modelplan_status modelplan_check(const modelplan_buffers* buffers, const int64_t* offsets, char* message, size_t room);

modelplan_stop* modelplan_new_stop(void);          /* NULL without memory */
void modelplan_request_stop(modelplan_stop* stop); /* from any thread */
void modelplan_free_stop(modelplan_stop* stop);

/* "complete", "optimal", ... */
const char* modelplan_ended_name(modelplan_ended ended);

#ifdef __cplusplus
}
#endif

#endif
