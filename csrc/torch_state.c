/* Reads the global state of torch into one comparable value.
 *
 * Each field has a name. Where torch exports a C++ function for it that takes no C++ object and throws nothing, and
 * where that function agrees with the Python reader handed in under the same name, it is called directly; else the
 * Python reader is called each time. Knows nothing of guards. */

#include "torch_state.h"

#include "graphlift.h"
#include "tensor_reader.h"

#include <stdint.h>
#include <string.h>

int gl_state_fallback = 1; /* until the readers were handed in */

/* --- the fields that may be read directly --- */

typedef enum {
    BOOL,          /* bool f() */
    BYTE,          /* int8_t f() */
    LONG,          /* int64_t f() */
    INT,           /* int f() */
    CONTEXT_BOOL,  /* bool f(const at::Context *) */
    CONTEXT_BYTE,  /* an enumeration of uint8_t, f(const at::Context *) */
    PRECISION,     /* f(const at::Context *, backend, operation) */
    AUTOCAST_TYPE, /* dtype f(device type), only while anything is autocast */
    KEYS,          /* word number `first` of the thread's dispatch keys */
    GRAD_FLAGS,    /* the byte of c10::AutogradState that holds its flags */
    PYTHON,
} Way;

typedef struct {
    const char *name;
    Way way;
    const char *symbol;
    int first, second; /* further arguments */
} Known;

#define CONTEXT(method) "_ZNK2at7Context" method "Ev"

static const Known known[] = {
    {"keys_included", KEYS, "_ZN3c104impl26raw_local_dispatch_key_setE", 0, 0},
    {"keys_excluded", KEYS, "_ZN3c104impl26raw_local_dispatch_key_setE", 1, 0},
    {"grad_flags", GRAD_FLAGS, "_ZN3c1013AutogradState13get_tls_stateEv", 0, 0},
    {"default_dtype", BYTE, "_ZN3c1031get_default_dtype_as_scalartypeEv", 0, 0},
    {"function_modes", LONG, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", 0, 0},
    {"function_disabled", INT, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", 0, 0},
    {"dispatch_modes", LONG, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", 0, 0},
    {"autocast_cache", BOOL, "_ZN2at8autocast25is_autocast_cache_enabledEv", 0, 0},
    {"deterministic", CONTEXT_BOOL, CONTEXT("23deterministicAlgorithms"), 0, 0},
    {"deterministic_warn_only", CONTEXT_BOOL, CONTEXT("31deterministicAlgorithmsWarnOnly"), 0, 0},
    {"deterministic_fill", CONTEXT_BOOL, CONTEXT("36deterministicFillUninitializedMemory"), 0, 0},
    {"mkldnn", CONTEXT_BOOL, CONTEXT("17userEnabledMkldnn"), 0, 0},
    {"mkldnn_deterministic", CONTEXT_BOOL, CONTEXT("19deterministicMkldnn"), 0, 0},
    {"cudnn", CONTEXT_BOOL, CONTEXT("16userEnabledCuDNN"), 0, 0},
    {"cudnn_benchmark", CONTEXT_BOOL, CONTEXT("14benchmarkCuDNN"), 0, 0},
    {"cudnn_deterministic", CONTEXT_BOOL, CONTEXT("18deterministicCuDNN"), 0, 0},
    {"nnpack", CONTEXT_BOOL, CONTEXT("17userEnabledNNPACK"), 0, 0},
    {"flash_sdp", CONTEXT_BOOL, CONTEXT("19userEnabledFlashSDP"), 0, 0},
    {"mem_efficient_sdp", CONTEXT_BOOL, CONTEXT("26userEnabledMemEfficientSDP"), 0, 0},
    {"math_sdp", CONTEXT_BOOL, CONTEXT("18userEnabledMathSDP"), 0, 0},
    {"cudnn_sdp", CONTEXT_BOOL, CONTEXT("19userEnabledCuDNNSDP"), 0, 0},
    {"fp16_accumulation", CONTEXT_BOOL, CONTEXT("27allowFP16AccumulationCuBLAS"), 0, 0},
    {"fp16_reduction_cpu", CONTEXT_BOOL, CONTEXT("21allowFP16ReductionCPU"), 0, 0},
    {"fp16_reduction", CONTEXT_BYTE, CONTEXT("24allowFP16ReductionCuBLAS"), 0, 0},
    {"bf16_reduction", CONTEXT_BYTE, CONTEXT("24allowBF16ReductionCuBLAS"), 0, 0},
    {"math_sdp_reduction", CONTEXT_BOOL, CONTEXT("29allowFP16BF16ReductionMathSDP"), 0, 0},
    {"precision_all", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 0, 0},
    {"precision_cuda_conv", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 1, 1},
    {"precision_cuda_rnn", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 1, 2},
    {"precision_cuda_matmul", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 1, 3},
    {"precision_mkldnn_conv", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 2, 1},
    {"precision_mkldnn_rnn", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 2, 2},
    {"precision_mkldnn_matmul", PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", 2, 3},
    {"threads", INT, "_ZN2at15get_num_threadsEv", 0, 0},
    {"autocast_cpu", AUTOCAST_TYPE, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", 0, 0},
    {"autocast_cuda", AUTOCAST_TYPE, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", 1, 0},
    {"autocast_xpu", AUTOCAST_TYPE, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", 12, 0},
    {"autocast_mps", AUTOCAST_TYPE, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", 13, 0},
};

enum {
    FIELDS = 48,
    GRAD_BYTES = 40,    /* how far into c10::AutogradState its flags are looked for */
    KNOWN_FLAGS = 0x1f, /* grad, inference, forward grad, threads, view replay; newer ones lie above */
};

typedef struct {
    const char *name; /* NULL: unknown to the table */
    Way way;
    const void *address;
    int first, second;
    PyObject *reader;
} Field;

static Field fields[FIELDS];
static int nfields;
static int included = -1, excluded = -1, function_modes = -1, dispatch_modes = -1; /* which fields these are */
static const void *context;     /* at::globalContext() */
static int grad_byte;           /* where in c10::AutogradState the flags are */
static PyObject *stacks_reader; /* what lies on the stacks of modes and transforms, as bytes */
static uint64_t functorch_key;  /* the dispatch key that is on while a functorch transform is */
static uint64_t default_keys[2]; /* torch keeps the thread's keys as a difference from these */

typedef struct {
    uint64_t words[FIELDS]; /* in the order of the fields */
    PyObject *extra;        /* bytes: what lies on stacks that are not empty; NULL: they are empty */
} State;

/* --- reading --- */

/* Thread-local variables of torch have one address a thread, which dlsym tells for the thread that asks. */
static const uint64_t *thread_keys(void)
{
    static __thread const uint64_t *address;
    if (address == NULL) {
        address = gl_torch_symbol("_ZN3c104impl26raw_local_dispatch_key_setE");
    }
    return address;
}

static uint64_t call_python(const Field *field, int *failed)
{
    PyObject *value = PyObject_CallNoArgs(field->reader);
    uint64_t word = value ? PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    *failed |= PyErr_Occurred() != NULL;
    return word;
}

static uint64_t read_field(const Field *field, int *failed)
{
    const void *f = field->address;
    switch (field->way) {
    case KEYS:
        return thread_keys()[field->first] ^ default_keys[field->first];
    case GRAD_FLAGS:
        return ((const uint8_t *(*)(void))f)()[grad_byte] & KNOWN_FLAGS;
    case BOOL:
        return ((_Bool(*)(void))f)();
    case BYTE:
        return (uint64_t)((int8_t(*)(void))f)();
    case LONG:
        return (uint64_t)((int64_t(*)(void))f)();
    case INT:
        return (uint64_t)((int (*)(void))f)();
    case CONTEXT_BOOL:
        return ((_Bool(*)(const void *))f)(context);
    case CONTEXT_BYTE:
        return ((uint8_t(*)(const void *))f)(context);
    case PRECISION:
        return (uint64_t)((int (*)(const void *, int, int))f)(context, field->first, field->second);
    case AUTOCAST_TYPE:
        return (uint64_t)((int8_t(*)(int8_t))f)((int8_t)field->first);
    case PYTHON:
        break;
    }
    return call_python(field, failed);
}

static int stacks_in_use(const uint64_t *words)
{
    return words[function_modes] != 0 || words[dispatch_modes] != 0 || (words[included] & functorch_key) != 0;
}

/* 0, or -1 with an error set. */
static int read_state(State *state)
{
    int failed = 0;
    state->extra = NULL;
    for (int i = 0; i < nfields; i++) {
        /* Which dtype autocast casts to is read by nobody while no autocast is on. */
        int idle = fields[i].way == AUTOCAST_TYPE && state->words[excluded] == default_keys[1];
        state->words[i] = idle ? 0 : read_field(&fields[i], &failed);
    }
    if (!failed && stacks_in_use(state->words)) {
        state->extra = PyObject_CallNoArgs(stacks_reader);
        if (state->extra != NULL && !PyBytes_CheckExact(state->extra)) {
            PyErr_SetString(PyExc_TypeError, "the reader of stacks must give bytes");
            Py_CLEAR(state->extra);
        }
        failed = state->extra == NULL;
    }
    return failed ? -1 : 0;
}

int gl_torch_state_is(const char *bytes, Py_ssize_t size)
{
    State now;
    Py_ssize_t words = nfields * (Py_ssize_t)sizeof(uint64_t);
    if (size < words || nfields == 0 || read_state(&now) < 0) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t extra = now.extra ? PyBytes_GET_SIZE(now.extra) : 0;
    int same = size == words + extra && memcmp(bytes, now.words, (size_t)words) == 0 &&
               (extra == 0 || memcmp(bytes + words, PyBytes_AS_STRING(now.extra), (size_t)extra) == 0);
    Py_XDECREF(now.extra);
    return same;
}

/* --- learning which fields can be read directly --- */

static const Known *find_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

/* Which byte of c10::AutogradState holds what the reader says, with grad mode on and off; -1: none or several. */
static int learn_grad_byte(const Field *field, PyObject *set_grad)
{
    uint8_t candidates[GRAD_BYTES];
    int found = -1, failed = 0;
    uint64_t before = call_python(field, &failed);
    memset(candidates, 1, sizeof candidates);
    for (int turn = 0; turn < 2 && !failed; turn++) {
        PyObject *result = PyObject_CallOneArg(set_grad, (before & 1) == (uint64_t)turn ? Py_True : Py_False);
        failed |= result == NULL;
        Py_XDECREF(result);
        if (!failed) {
            uint64_t wanted = call_python(field, &failed);
            const uint8_t *bytes = ((const uint8_t *(*)(void))field->address)();
            for (int i = 0; i < GRAD_BYTES; i++) {
                candidates[i] &= (bytes[i] & KNOWN_FLAGS) == wanted;
            }
        }
    }
    for (int i = 0; i < GRAD_BYTES && !failed; i++) {
        if (candidates[i]) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

/* Makes a field direct if torch's function is there and says what the reader says. */
static void make_direct(Field *field, const Known *row, PyObject *set_grad)
{
    Field direct = *field;
    int failed = 0;
    direct.address = gl_torch_symbol(row->symbol);
    direct.way = row->way;
    direct.first = row->first;
    direct.second = row->second;
    int needs_context = row->way == CONTEXT_BOOL || row->way == CONTEXT_BYTE || row->way == PRECISION;
    if (direct.address == NULL || (needs_context && context == NULL)) {
        return;
    }
    uint64_t wanted = call_python(field, &failed);
    if (row->way == KEYS && !failed) {
        default_keys[row->first] = thread_keys()[row->first] ^ wanted;
    }
    if (row->way == GRAD_FLAGS && (grad_byte = learn_grad_byte(&direct, set_grad)) < 0) {
        failed = 1;
    }
    if (!failed && read_field(&direct, &failed) == wanted && !failed) {
        *field = direct;
    }
    PyErr_Clear();
}

static void note_place(const char *name, int at)
{
    int *place = strcmp(name, "keys_included") == 0    ? &included
                 : strcmp(name, "keys_excluded") == 0  ? &excluded
                 : strcmp(name, "function_modes") == 0 ? &function_modes
                 : strcmp(name, "dispatch_modes") == 0 ? &dispatch_modes
                                                       : NULL;
    if (place != NULL) {
        *place = at;
    }
}

/* item: (name, reader) */
static int take_reader(PyObject *item, PyObject *set_grad, int forced)
{
    const char *name;
    PyObject *reader;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a reader of torch's state is (name, callable)");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "sO", &name, &reader)) {
        return -1;
    }
    if (nfields == FIELDS) {
        PyErr_SetString(PyExc_ValueError, "too many fields of torch's state");
        return -1;
    }
    const Known *row = find_known(name);
    Field *field = &fields[nfields];
    *field = (Field){row ? row->name : NULL, PYTHON, NULL, 0, 0, Py_NewRef(reader)};
    note_place(name, nfields++);
    if (row != NULL && !forced) {
        make_direct(field, row, set_grad);
    }
    gl_state_fallback |= field->way == PYTHON;
    return 0;
}

static void forget_fields(void)
{
    while (nfields > 0) {
        Py_CLEAR(fields[--nfields].reader);
    }
    included = excluded = function_modes = dispatch_modes = -1;
    gl_state_fallback = 0;
}

/* The names of the fields that need Python, joined; "fast" when there are none. */
static PyObject *describe_fields(void)
{
    PyObject *slow = PyUnicode_FromString("");
    for (int i = 0; i < nfields && slow != NULL; i++) {
        if (fields[i].way == PYTHON) {
            PyObject *next = PyUnicode_FromFormat("%U%s%s", slow, PyUnicode_GET_LENGTH(slow) ? ", " : "",
                                                  fields[i].name ? fields[i].name : "?");
            Py_SETREF(slow, next);
        }
    }
    if (slow != NULL && PyUnicode_GET_LENGTH(slow) == 0) {
        Py_SETREF(slow, PyUnicode_FromString("fast"));
    }
    return slow;
}

static PyObject *init_torch_state(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"readers", "stacks_reader", "functorch_key", "set_grad", "force_fallback", NULL};
    PyObject *readers, *stacks, *set_grad;
    unsigned long long key;
    int forced = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOKO|p:init_torch_state", names, &readers, &stacks, &key,
                                     &set_grad, &forced)) {
        return NULL;
    }
    PyObject *rows = PySequence_Fast(readers, "readers must be a sequence");
    if (rows == NULL) {
        return NULL;
    }
    void *const *(*global_context)(void) = (void *const *(*)(void))gl_torch_symbol("_ZN2at13globalContextEv");
    context = global_context ? global_context() : NULL;
    Py_XSETREF(stacks_reader, Py_NewRef(stacks));
    functorch_key = key;
    forget_fields();
    int failed = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows) && !failed; i++) {
        failed = take_reader(PySequence_Fast_GET_ITEM(rows, i), set_grad, forced) < 0;
    }
    Py_DECREF(rows);
    if (!failed && (included != 0 || excluded != 1 || function_modes < 0 || dispatch_modes < 0)) {
        PyErr_SetString(PyExc_ValueError, "the thread's keys come first; the stacks of modes are needed");
        failed = 1;
    }
    if (failed) {
        forget_fields();
        gl_state_fallback = 1;
        return NULL;
    }
    return describe_fields();
}

static PyObject *torch_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    State now;
    if (nfields == 0) {
        return PyErr_Format(PyExc_RuntimeError, "init_torch_state() was not called");
    }
    if (read_state(&now) < 0) {
        return NULL;
    }
    Py_ssize_t words = nfields * (Py_ssize_t)sizeof(uint64_t);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)now.words, words);
    if (now.extra != NULL) {
        PyBytes_ConcatAndDel(&bytes, now.extra);
    }
    return bytes;
}

static PyMethodDef functions[] = {
    {"init_torch_state", (PyCFunction)(void (*)(void))init_torch_state, METH_VARARGS | METH_KEYWORDS,
     "init_torch_state(readers, stacks_reader, functorch_key, set_grad, force_fallback=False) -> str\n\n"
     "Take the fields, as (name, callable giving an int); \"fast\", or the names of those read through Python."},
    {"torch_state", torch_state, METH_NOARGS,
     "torch_state() -> bytes\n\nThe global torch state that every captured tensor operation reads."},
    {NULL, NULL, 0, NULL},
};

int gl_torch_state_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
