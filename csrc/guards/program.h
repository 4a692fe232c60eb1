/* A guard program: its nodes, and what building it, running it and measuring it agree on. */

#ifndef GRAPHLIFT_GUARDS_PROGRAM_H
#define GRAPHLIFT_GUARDS_PROGRAM_H

#include "memo.h"

enum {
    GL_SMALL_PROGRAM = 64, /* registers that fit on the C stack */
    GL_LONGEST_PATH = 24,  /* from a root to a node that is asked alone */
};

typedef struct {
    PyObject_HEAD
    GlNode *nodes;
    Py_ssize_t size;
    Py_ssize_t registers;
    int32_t *outputs;
    Py_ssize_t noutputs;
    int calls_out;
    int32_t *makers; /* by register: the node that writes it */
    GlMemos memos;
    Py_ssize_t suspect;             /* the node that failed last, to be asked first; -1: none */
    int32_t path[GL_LONGEST_PATH];  /* from it up to a root */
    Py_ssize_t path_length;
    int failures; /* how often it failed lately */
    PyObject *audit; /* called after each run with what came out, or NULL */
} GlProgram;

/* Sets `failed` to a node that does not hold, or -1; fills `bound`, if not NULL, when all holds and there are outputs.
 * -1 with an error set when memory is short or the audit objects. */
int gl_program_run(GlProgram *self, GlRun *run, Py_ssize_t *failed, PyObject **bound);

/* costs.c: what Python calls to measure. */
PyObject *gl_program_measure(GlProgram *self, PyObject *args);
PyObject *gl_program_profile(GlProgram *self, PyObject *args);


/* Memory for the registers and what is owned: `small` where it is big enough. NULL with an error set. */
PyObject **gl_take_registers(const GlProgram *self, PyObject **small);
void gl_begin_run(const GlProgram *self, GlRun *run, PyObject **registers);

#endif
