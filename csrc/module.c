/* The extension module graphlift._C: refuses where it cannot work, then lets each file add its part.
 *
 * The interpreter is asked when the module runs, not when it is found: CPython 3.13 finds extension
 * modules for a subinterpreter from the main one. */

#include "runtime.h"

static int
check_interpreter(void)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "graphlift._C does not support free-threaded builds of CPython.");
    return -1;
#endif
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "graphlift._C works in the main interpreter only, not in subinterpreters.");
        return -1;
    }
    return 0;
}

static int
module_exec(PyObject *module)
{
    if (check_interpreter() < 0) {
        return -1;
    }
    static int (*const parts[])(PyObject *) = {
        gl_guards_init,  gl_tensor_reader_init, gl_torch_state_init, gl_entry_init,      gl_cache_init,
        gl_regions_init, gl_jump_init,          gl_compiled_init,    gl_eval_frame_init, gl_frame_callback_init,
        gl_quiet_init,   gl_classes_init,       gl_known_hashes_init, gl_buffers_init,    gl_collector_init,
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++) {
        if (parts[i](module) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)module_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "graphlift._C",
    .m_doc = "The C core: frame hook, code cache, compiled functions, guards.",
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__C(void)
{
    return PyModuleDef_Init(&definition);
}
