/* CPython 3.13: as 3.12, but the frame holds any executable and points at the next instruction itself. */

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED /* a macro outside, a function inside */
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

#define gl_tstate() PyThreadState_GetUnchecked()
#define GL_CURRENT_FRAME(tstate) ((tstate)->current_frame)
#define GL_YOUNG_OBJECTS() (PyInterpreterState_Get()->gc.generations[0].count)
#define gl_is_finalizing() Py_IsFinalizing()

#define GL_CODE_EXTRA_REQUEST(release) PyUnstable_Eval_RequestCodeExtraIndex(release)
#define GL_CODE_EXTRA_GET(code, index, out) PyUnstable_Code_GetExtra(code, index, out)
#define GL_CODE_EXTRA_SET(code, index, value) PyUnstable_Code_SetExtra(code, index, value)

#define gl_frame_code(frame) ((PyCodeObject *)(frame)->f_executable)
#define gl_frame_function(frame) ((frame)->f_funcobj)

static inline void
gl_frame_set_code(_PyInterpreterFrame *frame, PyCodeObject *code, int at)
{
    PyObject *former = frame->f_executable;
    frame->f_executable = (PyObject *)code;
    frame->instr_ptr = _PyCode_CODE(code) + at;
    Py_DECREF(former);
}

#define gl_code_frame_size(code) ((Py_ssize_t)(code)->co_framesize)

#define GL_EVALUATOR_POPS_FRAME 1

#define GL_C_RECURSION_CREDIT(tstate, units) ((tstate)->c_recursion_remaining += (units))
#define GL_C_CALL_CREDIT(tstate, units) ((tstate)->c_recursion_remaining += (units))
#define GL_PY_RECURSION_CREDIT(tstate, units) ((tstate)->py_recursion_remaining += (units))

#include "monitoring.h"
