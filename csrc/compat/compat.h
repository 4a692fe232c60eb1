/* Chooses the facts of the running CPython. The only place that reads PY_VERSION_HEX.
 *
 * Each py3XX.h defines the same names:
 *   gl_tstate()                       the calling thread's state, unchecked
 *   GL_CURRENT_FRAME(ts)              the innermost interpreter frame of a thread, can be assigned to
 *   gl_is_finalizing()                whether the interpreter is going down
 *   GL_CODE_EXTRA_{REQUEST,GET,SET}   slots that hang things on code objects
 *   gl_frame_code(f)                  borrowed code object of an interpreter frame
 *   gl_frame_function(f)              borrowed function object of an interpreter frame
 *   gl_frame_set_code(f, code, at)    takes over a reference to `code`; next instruction: code unit `at`
 *   gl_code_frame_size(code)          words that a frame of this code takes on the data stack
 *   GL_EVALUATOR_POPS_FRAME           1: the evaluator clears and pops a frame, 0: its caller does
 *   GL_C_RECURSION_CREDIT(ts, n)      raises what is left of the C recursion counter, where there is one
 *   GL_PY_RECURSION_CREDIT(ts, n)     the same for the counter of Python frames
 *   GL_C_CALL_CREDIT(ts, n)           the same for the counter of calls of C functions
 *   gl_is_watched(ts)                 whether somebody wants to see each line that the thread runs
 *   GL_YOUNG_OBJECTS()                objects made since the last collection less those gone, can be assigned to */

#ifndef GRAPHLIFT_COMPAT_H
#define GRAPHLIFT_COMPAT_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "py311.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "py312.h"
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "py313.h"
#else
#error "graphlift supports CPython 3.11, 3.12 and 3.13; this version has no file in csrc/compat yet."
#endif

/* What one entry of the default evaluator takes from the C recursion counter. A Python-to-Python call
 * takes nothing from it in plain CPython, so frames that we make enter by way of C are given it back. */
#define GL_EVALUATOR_C_UNITS 2

#endif
