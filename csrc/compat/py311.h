/* CPython 3.11: the caller clears and pops frames; one recursion counter, for Python frames and calls of C functions. */

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED /* a macro outside, too */
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

#define gl_tstate() _PyThreadState_UncheckedGet()
#define GL_CURRENT_FRAME(tstate) ((tstate)->cframe->current_frame)
#define GL_YOUNG_OBJECTS() (PyInterpreterState_Get()->gc.generations[0].count)
#define gl_is_finalizing() _Py_IsFinalizing()

#define GL_CODE_EXTRA_REQUEST(release) _PyEval_RequestCodeExtraIndex(release)
#define GL_CODE_EXTRA_GET(code, index, out) _PyCode_GetExtra(code, index, out)
#define GL_CODE_EXTRA_SET(code, index, value) _PyCode_SetExtra(code, index, value)

#define gl_frame_code(frame) ((frame)->f_code)
#define gl_frame_function(frame) ((PyObject *)(frame)->f_func)

static inline void
gl_frame_set_code(_PyInterpreterFrame *frame, PyCodeObject *code, int at)
{
    PyCodeObject *former = frame->f_code;
    frame->f_code = code;
    /* The pointer stands on the unit before the next one. */
    frame->prev_instr = _PyCode_CODE(code) + at - 1;
    Py_DECREF(former);
}

#define gl_code_frame_size(code) \
    ((Py_ssize_t)(code)->co_nlocalsplus + (code)->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE)

#define GL_EVALUATOR_POPS_FRAME 0

#define GL_C_RECURSION_CREDIT(tstate, units) ((void)(tstate))
#define GL_PY_RECURSION_CREDIT(tstate, units) ((tstate)->recursion_remaining += (units))
#define GL_C_CALL_CREDIT(tstate, units) ((tstate)->recursion_remaining += (units))

/* Whether somebody watches what this thread runs line by line. */
#define gl_is_watched(tstate) ((tstate)->c_tracefunc != NULL)
