/* What the files that touch interpreter frames share: running other code in a frame that has not started
 * yet, and the library user's callback. */

#ifndef GRAPHLIFT_FRAME_SWAP_H
#define GRAPHLIFT_FRAME_SWAP_H

#include "runtime.h"
#include "compat/compat.h"

/* Whether the frame can take `code` where it lies; grows it if need be. */
int gl_frame_make_room(PyThreadState *tstate, _PyInterpreterFrame *frame, PyCodeObject *code);

/* Lets CPython run `code` in a frame that has room for it. `bound` (taken over, may be NULL) goes to the
 * first local after the parameters. May return a Jump. */
PyObject *gl_frame_run_code(PyThreadState *tstate, _PyInterpreterFrame *frame, PyCodeObject *code,
                            PyObject *bound);

/* Ends a frame that never ran as if it had returned `result`, or raised when `result` is NULL. Takes over
 * `result` and returns it. */
PyObject *gl_frame_finish(PyThreadState *tstate, _PyInterpreterFrame *frame, PyObject *result);

/* Releases what a frame that has returned still holds, where its caller is the one to clear it. */
void gl_frame_release_locals(_PyInterpreterFrame *frame);

/* frame_callback.c: asks the thread's callback about a frame. 1 when that settled it, with what the frame
 * returned in `*result`; 0 to go on with the frame. */
int gl_callback_evaluate(PyThreadState *tstate, GlThread *thread, _PyInterpreterFrame *frame,
                         PyObject **result);

#endif
