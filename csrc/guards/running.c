/* Running a guard program: what is remembered first, then all nodes in order. */

#include "program.h"

#include "../runtime.h"
#include "../tensor_reader.h"
#include "../torch_state.h"

/* The index of the first node that does not hold, or -1. */
static Py_ssize_t run_nodes(const GlProgram *self, GlRun *run)
{
    const GlNode *node = self->nodes, *end = node + self->size;
    for (; node < end; node++) {
        if (!node->run(node, run)) {
            return node - self->nodes;
        }
    }
    return -1;
}

PyObject **gl_take_registers(const GlProgram *self, PyObject **small)
{
    if (self->registers <= GL_SMALL_PROGRAM) {
        return small;
    }
    PyObject **registers = PyMem_New(PyObject *, 2 * self->registers);
    if (registers == NULL) {
        PyErr_NoMemory();
    }
    return registers;
}

void gl_begin_run(const GlProgram *self, GlRun *run, PyObject **registers)
{
    run->values = registers;
    run->owned = registers + self->registers;
    run->nowned = 0;
    run->owning = self->calls_out || gl_tensor_fallback || gl_state_fallback;
}

static void fill_outputs(const GlProgram *self, const GlRun *run, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < self->noutputs; i++) {
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(run->values[self->outputs[i]]));
    }
}

/* --- what failed lately ---
 *
 * Where several entries of a cache are tried in turn, mostly the same place tells them apart. A program that has failed
 * there asks there first. Nodes that may be asked alone look at what they are given before they believe it. */

enum { FEW = 8 };

static void note_failure(GlProgram *self, Py_ssize_t failed)
{
    self->failures += self->failures < FEW;
    if (failed == self->suspect || !(self->nodes[failed].op->flags & GL_ALONE)) {
        return;
    }
    self->suspect = -1;
    Py_ssize_t length = 0;
    for (const GlNode *node = &self->nodes[failed];;) {
        if (length == GL_LONGEST_PATH) {
            return;
        }
        self->path[length++] = (int32_t)(node - self->nodes);
        if (node->op->flags & GL_ROOT) {
            break;
        }
        node = &self->nodes[self->makers[node->from]];
    }
    self->path_length = length;
    self->suspect = failed;
}

static int may_ask_alone(const GlProgram *self)
{
    return !self->calls_out && self->audit == NULL && !gl_tensor_fallback && !gl_state_fallback;
}

static int suspect_fails(GlProgram *self, const GlRun *given)
{
    PyObject *registers[2 * GL_LONGEST_PATH];
    GlRun run = *given;
    int holds = 1;
    run.values = registers; /* one node's result is the next one's parent, whatever their registers */
    run.owned = registers + GL_LONGEST_PATH;
    run.nowned = run.owning = run.again = 0;
    for (Py_ssize_t i = self->path_length - 1; holds && i >= 0; i--) {
        GlNode node = self->nodes[self->path[i]];
        node.from = (int32_t)(self->path_length - i - 2);
        node.to = node.from + 1;
        holds = node.run(&node, &run);
    }
    gl_let_go(&run, 0);
    return !holds && !run.again;
}

/* --- a whole run --- */

static int call_audit(GlProgram *self, const GlRun *run, Py_ssize_t failed)
{
    PyObject *params = PyTuple_New(run->nparams);
    if (params == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < run->nparams; i++) {
        PyTuple_SET_ITEM(params, i, Py_NewRef(run->params[i]));
    }
    PyObject *audit = Py_NewRef(self->audit);
    PyObject *result = PyObject_CallFunction(audit, "OOn", run->function, params, failed);
    Py_DECREF(audit);
    Py_DECREF(params);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* All nodes, behind a memo `used` that was unsure of one. */
static int run_whole(GlProgram *self, GlRun *run, Py_ssize_t *failed, PyObject *tuple, GlMemo *used)
{
    PyObject *small[2 * GL_SMALL_PROGRAM];
    PyObject **registers = gl_take_registers(self, small);
    Py_ssize_t refused_at = *failed;
    if (registers == NULL) {
        return -1;
    }
    gl_begin_run(self, run, registers);
    *failed = run_nodes(self, run);
    if (GL_UNLIKELY(run->again)) {
        gl_let_go(run, 0);
        run->owning = 1;
        *failed = run_nodes(self, run);
    }
    if (*failed < 0) {
        if (tuple != NULL) {
            fill_outputs(self, run, tuple);
        }
        if (!run->owning) { /* else what was read first may have changed since */
            gl_remember(&self->memos, self->nodes, self->size, self->registers, run, used, refused_at);
        }
    }
    gl_let_go(run, 0);
    if (registers != small) {
        PyMem_Free(registers);
    }
    return 0;
}

int gl_program_run(GlProgram *self, GlRun *run, Py_ssize_t *failed, PyObject **bound)
{
    PyObject *tuple = NULL;
    GlMemo *used;
    int error = 0;
    if (bound != NULL && self->noutputs > 0) {
        /* Before anything is looked at: on 3.11 a collection, and so a finalizer, may run here. */
        tuple = PyTuple_New(self->noutputs);
        if (tuple == NULL) {
            return -1;
        }
    }
    *failed = -1;
    run->again = 0;
    run->nowned = 0;
    switch (gl_recall(&self->memos, run, failed, &used)) {
    case GL_MEMO_HOLDS:
        if (tuple != NULL) {
            fill_outputs(self, run, tuple);
        }
        gl_let_go(run, 0);
        break;
    case GL_MEMO_FAILS:
        gl_let_go(run, 0);
        if (!run->again) {
            break;
        }
        /* fall through */
    case GL_MEMO_UNSURE:
        if (used != NULL) {
            gl_let_go(run, 0);
        }
        error = run_whole(self, run, failed, tuple, used) < 0;
        break;
    }
    if (!error && self->audit != NULL && call_audit(self, run, *failed) < 0) {
        error = 1;
    }
    if (error || *failed >= 0) {
        Py_CLEAR(tuple);
    }
    if (bound != NULL) {
        *bound = tuple;
    }
    return error ? -1 : 0;
}

int gl_guard_run(PyObject *program, PyObject *function, PyObject *const *params, Py_ssize_t nparams,
                 PyObject **bound)
{
    GlProgram *self = (GlProgram *)program;
    GlRun run = {.function = function, .params = params, .nparams = nparams};
    Py_ssize_t failed;
    if (bound != NULL) {
        *bound = NULL;
    }
    if (GL_UNLIKELY(self->failures > 0 && self->suspect >= 0) && may_ask_alone(self) && suspect_fails(self, &run)) {
        return 0;
    }
    if (gl_program_run(self, &run, &failed, bound) < 0) {
        return -1;
    }
    if (GL_UNLIKELY(failed >= 0)) {
        note_failure(self, failed);
        return 0;
    }
    self->failures -= self->failures > 0;
    return 1;
}

int gl_guards_has_outputs(PyObject *program) { return ((GlProgram *)program)->noutputs > 0; }
