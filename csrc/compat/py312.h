/* CPython 3.12: the evaluator clears and pops frames; C recursion is counted apart. */

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED /* a macro outside, a function inside */
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

#define gl_tstate() _PyThreadState_UncheckedGet()
#define GL_CURRENT_FRAME(tstate) ((tstate)->cframe->current_frame)
#define GL_YOUNG_OBJECTS() (PyInterpreterState_Get()->gc.generations[0].count)
#define gl_is_finalizing() _Py_IsFinalizing()

#define GL_CODE_EXTRA_REQUEST(release) PyUnstable_Eval_RequestCodeExtraIndex(release)
#define GL_CODE_EXTRA_GET(code, index, out) PyUnstable_Code_GetExtra(code, index, out)
#define GL_CODE_EXTRA_SET(code, index, value) PyUnstable_Code_SetExtra(code, index, value)

#define gl_frame_code(frame) ((frame)->f_code)
#define gl_frame_function(frame) ((frame)->f_funcobj)

static inline void
gl_frame_set_code(_PyInterpreterFrame *frame, PyCodeObject *code, int at)
{
    PyCodeObject *former = frame->f_code;
    frame->f_code = code;
    /* The pointer stands on the unit before the next one. */
    frame->prev_instr = _PyCode_CODE(code) + at - 1;
    Py_DECREF(former);
}

#define gl_code_frame_size(code) ((Py_ssize_t)(code)->co_framesize)

#define GL_EVALUATOR_POPS_FRAME 1

#define GL_C_RECURSION_CREDIT(tstate, units) ((tstate)->c_recursion_remaining += (units))
#define GL_C_CALL_CREDIT(tstate, units) ((tstate)->c_recursion_remaining += (units))
#define GL_PY_RECURSION_CREDIT(tstate, units) ((tstate)->py_recursion_remaining += (units))

#include "monitoring.h"
