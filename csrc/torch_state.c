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
    AT_BYTE,       /* a byte in memory, found in the code of a getter that does nothing else */
    KEYS,          /* word number `first` of the thread's dispatch keys */
    GRAD_FLAGS,    /* the byte of c10::AutogradState that holds its flags */
    MODES_OFF,     /* the first word of at::impl::PythonTorchFunctionTLS */
    MODES_LENGTH,  /* the length of the vector in it */
    LONG,          /* int64_t f() */
    INT,           /* int f() */
    BYTE,          /* uint8_t f(), or a bool or an enumeration of a byte */
    CONTEXT_BYTE,  /* the same of f(const at::Context *) */
    PRECISION,     /* f(const at::Context *, backend, operation) */
    PYTHON,
    /* What follows is zero, or read by nobody, while the thread's dispatch keys are the usual ones. */
    DISPATCH,      /* int64_t f() */
    AUTOCAST_FLAG, /* bool f() */
    AUTOCAST_TYPE, /* dtype f(device type) */
} Way;

typedef struct {
    const char *name;
    Way way;
    const char *symbol;
    int first, second; /* further arguments */
} Known;

#define CONTEXT(method) CONTEXT_BYTE, "_ZNK2at7Context" method "Ev", 0, 0
#define FLOAT32(backend, operation)                                                                                    \
    PRECISION, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE", backend, operation
#define AUTOCAST(device) AUTOCAST_TYPE, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE", device, 0
#define MODES "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv"
#define THREAD_KEYS "_ZN3c104impl26raw_local_dispatch_key_setE"

/* A name may have several rows: the later are tried where an earlier one turns out wrong. */
static const Known known[] = {
    {"keys_included", KEYS, THREAD_KEYS, 0, 0},
    {"keys_excluded", KEYS, THREAD_KEYS, 1, 0},
    {"grad_flags", GRAD_FLAGS, "_ZN3c1013AutogradState13get_tls_stateEv", 0, 0},
    {"function_modes", MODES_LENGTH, MODES, 0, 0},
    {"function_modes", LONG, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", 0, 0},
    {"function_disabled", MODES_OFF, MODES, 0, 0},
    {"function_disabled", INT, "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", 0, 0},
    {"dispatch_modes", DISPATCH, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", 0, 0},
    {"dispatch_modes", LONG, "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", 0, 0},
    {"default_dtype", BYTE, "_ZN3c1031get_default_dtype_as_scalartypeEv", 0, 0},
    {"deterministic", CONTEXT("23deterministicAlgorithms")},
    {"deterministic_warn_only", CONTEXT("31deterministicAlgorithmsWarnOnly")},
    {"deterministic_fill", CONTEXT("36deterministicFillUninitializedMemory")},
    {"mkldnn", CONTEXT("17userEnabledMkldnn")},
    {"mkldnn_deterministic", CONTEXT("19deterministicMkldnn")},
    {"cudnn", CONTEXT("16userEnabledCuDNN")},
    {"cudnn_benchmark", CONTEXT("14benchmarkCuDNN")},
    {"cudnn_deterministic", CONTEXT("18deterministicCuDNN")},
    {"nnpack", CONTEXT("17userEnabledNNPACK")},
    {"flash_sdp", CONTEXT("19userEnabledFlashSDP")},
    {"mem_efficient_sdp", CONTEXT("26userEnabledMemEfficientSDP")},
    {"math_sdp", CONTEXT("18userEnabledMathSDP")},
    {"cudnn_sdp", CONTEXT("19userEnabledCuDNNSDP")},
    {"fp16_accumulation", CONTEXT("27allowFP16AccumulationCuBLAS")},
    {"fp16_reduction_cpu", CONTEXT("21allowFP16ReductionCPU")},
    {"fp16_reduction", CONTEXT("24allowFP16ReductionCuBLAS")},
    {"bf16_reduction", CONTEXT("24allowBF16ReductionCuBLAS")},
    {"math_sdp_reduction", CONTEXT("29allowFP16BF16ReductionMathSDP")},
    {"precision_cuda_conv", FLOAT32(1, 1)},
    {"precision_cuda_rnn", FLOAT32(1, 2)},
    {"precision_cuda_matmul", FLOAT32(1, 3)},
    {"precision_mkldnn_conv", FLOAT32(2, 1)},
    {"precision_mkldnn_rnn", FLOAT32(2, 2)},
    {"precision_mkldnn_matmul", FLOAT32(2, 3)},
    {"threads", INT, "_ZN2at15get_num_threadsEv", 0, 0},
    {"autocast_cache", AUTOCAST_FLAG, "_ZN2at8autocast25is_autocast_cache_enabledEv", 0, 0},
    {"autocast_cpu", AUTOCAST(0)},
    {"autocast_cuda", AUTOCAST(1)},
    {"autocast_xpu", AUTOCAST(12)},
    {"autocast_mps", AUTOCAST(13)},
    {"autocast_hpu", AUTOCAST(15)},
    {"autocast_xla", AUTOCAST(9)},
    {"autocast_ipu", AUTOCAST(18)},
    {"autocast_mtia", AUTOCAST(19)},
    {"autocast_maia", AUTOCAST(8)},
    {"autocast_privateuseone", AUTOCAST(20)},
};

enum {
    FIELDS = 48,
    GRAD_BYTES = 40,    /* how far into c10::AutogradState its flags are looked for */
    KNOWN_FLAGS = 0x1f, /* grad, inference, forward grad, threads, view replay; newer ones lie above */
};

typedef struct {
    PyObject *name;
    PyObject *reader;
    const Known *row; /* how it is read directly; of no use with PYTHON */
    Way way;
    const void *address;
} Field;

static Field fields[FIELDS];
static int nfields;
static int nbytes;  /* how many, at the front, are bytes in memory */
static int nalways; /* how many come before those that are zero while the keys are the usual ones */
static const uint8_t *bytes_at[FIELDS];
static int function_modes = -1, dispatch_modes = -1; /* which fields these are */
static const void *context;      /* at::globalContext() */
static int grad_byte;            /* where in c10::AutogradState the flags are */
static PyObject *stacks_reader;  /* what lies on the stacks of modes and transforms, as bytes */
static PyObject *grad_setter;
static uint64_t functorch_key;   /* the dispatch key that is on while a functorch transform is */
static uint64_t usual_keys[2];   /* torch keeps the thread's keys as a difference from these */

/* --- the thread's own variables: their addresses are asked for once a thread --- */

typedef struct {
    int known;
    const uint64_t *keys;
    const uint8_t *grad;
    const char *modes;
} Thread;

static const void *call_for_address(const char *symbol)
{
    const void *(*function)(void) = (const void *(*)(void))gl_torch_symbol(symbol);
    return function ? function() : NULL;
}

/* Not inlined, else the compiler asks for the variable's address at each use instead of keeping it. */
static __attribute__((noinline)) const Thread *this_thread(void)
{
    static __thread Thread thread;
    if (!thread.known) {
        thread.keys = gl_torch_symbol(THREAD_KEYS); /* dlsym tells the address for the thread that asks */
        thread.grad = call_for_address("_ZN3c1013AutogradState13get_tls_stateEv");
        thread.modes = call_for_address(MODES);
        thread.known = 1;
    }
    return &thread;
}

/* --- reading --- */

static uint64_t call_python(const Field *field, int *failed)
{
    PyObject *value = PyObject_CallNoArgs(field->reader);
    uint64_t word = value ? PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    *failed |= PyErr_Occurred() != NULL;
    return word;
}

/* Whether no dispatch key is on or off on this thread that usually is not. */
static int usual(const Thread *thread) { return thread->keys != NULL && !(thread->keys[0] | thread->keys[1]); }

static uint64_t vector_length(const char *vector)
{
    enum { SHARED_POINTER = 16 };
    return (uint64_t)(((const char *const *)vector)[1] - ((const char *const *)vector)[0]) / SHARED_POINTER;
}

static uint64_t read_field(const Field *field, const Thread *thread, int *failed)
{
    const void *f = field->address;
    switch (field->way) {
    case AT_BYTE:
        return *(const uint8_t *)f;
    case KEYS:
        return thread->keys[field->row->first] ^ usual_keys[field->row->first];
    case GRAD_FLAGS:
        return thread->grad[grad_byte] & KNOWN_FLAGS;
    case MODES_OFF:
        return *(const uint32_t *)thread->modes;
    case MODES_LENGTH:
        return vector_length(thread->modes + 8);
    case DISPATCH:
        return usual(thread) ? 0 : (uint64_t)((int64_t(*)(void))f)();
    case AUTOCAST_FLAG:
        return usual(thread) ? 0 : ((_Bool(*)(void))f)();
    case AUTOCAST_TYPE:
        return usual(thread) ? 0 : (uint64_t)((uint8_t(*)(int8_t))f)((int8_t)field->row->first);
    case LONG:
        return (uint64_t)((int64_t(*)(void))f)();
    case INT:
        return (uint64_t)((int (*)(void))f)();
    case BYTE:
        return ((uint8_t(*)(void))f)();
    case CONTEXT_BYTE:
        return ((uint8_t(*)(const void *))f)(context);
    case PRECISION:
        return (uint64_t)((int (*)(const void *, int, int))f)(context, field->row->first, field->row->second);
    case PYTHON:
        break;
    }
    return call_python(field, failed);
}

static int stacks_in_use(const uint64_t *words, const Thread *thread)
{
    uint64_t included = thread->keys ? thread->keys[0] : functorch_key;
    return words[function_modes] != 0 || words[dispatch_modes] != 0 || (included & functorch_key) != 0;
}

/* What lies on the stacks, as bytes; NULL with an error set. */
static PyObject *read_stacks(void)
{
    PyObject *stacks = PyObject_CallNoArgs(stacks_reader);
    if (stacks != NULL && !PyBytes_CheckExact(stacks)) {
        PyErr_SetString(PyExc_TypeError, "the reader of stacks must give bytes");
        Py_CLEAR(stacks);
    }
    return stacks;
}

static int same_stacks(const uint64_t *words, const Thread *thread, const char *bytes, Py_ssize_t size)
{
    if (!stacks_in_use(words, thread)) {
        return size == 0;
    }
    PyObject *stacks = read_stacks();
    if (stacks == NULL) {
        return 0;
    }
    int same = PyBytes_GET_SIZE(stacks) == size && memcmp(PyBytes_AS_STRING(stacks), bytes, (size_t)size) == 0;
    Py_DECREF(stacks);
    return same;
}

int gl_torch_state_is(const char *bytes, Py_ssize_t size)
{
    const uint64_t *expected = (const uint64_t *)bytes;
    Py_ssize_t length = nfields * (Py_ssize_t)sizeof(uint64_t);
    const Thread *thread = this_thread();
    uint64_t words[FIELDS];
    int failed = nfields == 0 || size < length;
    int last = usual(thread) ? nalways : nfields;
    for (int i = 0; i < nbytes && !failed; i++) {
        failed = *bytes_at[i] != expected[i];
    }
    for (int i = nbytes; i < last && !failed; i++) {
        words[i] = read_field(&fields[i], thread, &failed);
        failed |= words[i] != expected[i];
    }
    for (int i = last; i < nfields && !failed; i++) {
        failed = (words[i] = 0) != expected[i];
    }
    int same = !failed && same_stacks(words, thread, bytes + length, size - length);
    if (!same) {
        PyErr_Clear();
    }
    return same;
}

/* --- learning which fields can be read directly --- */

/* The byte that a getter gives back, if its code does nothing else; NULL if it does, or for an unknown processor. */
static const uint8_t *byte_of_getter(const uint8_t *code, const void *self)
{
#if defined(__x86_64__)
    int32_t displacement;
    if (code[0] != 0x0f || code[1] != 0xb6 || code[7] != 0xc3) {
        return NULL; /* movzx eax, byte [...]; ret */
    }
    memcpy(&displacement, code + 3, sizeof displacement);
    if (code[2] == 0x87) {
        return (const uint8_t *)self + displacement;
    }
    return code[2] == 0x05 ? code + 7 + displacement : NULL;
#elif defined(__aarch64__)
    uint32_t load, back;
    memcpy(&load, code, sizeof load);
    memcpy(&back, code + 4, sizeof back);
    if ((load & 0xffc003ff) != 0x39400000 || back != 0xd65f03c0) {
        return NULL; /* ldrb w0, [x0, #...]; ret */
    }
    return (const uint8_t *)self + ((load >> 10) & 0xfff);
#else
    return NULL;
#endif
}

static int set_grad(int enabled)
{
    PyObject *result = PyObject_CallOneArg(grad_setter, enabled ? Py_True : Py_False);
    Py_XDECREF(result);
    return result != NULL;
}

/* Which byte of c10::AutogradState holds what the reader says, with grad mode on and off; -1: none or several. */
static int learn_grad_byte(const Field *field, const uint8_t *bytes)
{
    uint8_t candidates[GRAD_BYTES];
    int found = -1, failed = 0;
    int enabled = call_python(field, &failed) & 1;
    memset(candidates, 1, sizeof candidates);
    for (int turn = 0; turn < 2 && !failed; turn++) {
        failed |= !set_grad(turn == 0 ? !enabled : enabled);
        uint64_t wanted = failed ? 0 : call_python(field, &failed);
        for (int i = 0; i < GRAD_BYTES; i++) {
            candidates[i] &= (bytes[i] & KNOWN_FLAGS) == wanted;
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

/* What must be known before a field can be read in the way of a row. */
static int prepare(Field *direct, const Known *row, const Thread *thread, uint64_t wanted)
{
    direct->address = gl_torch_symbol(row->symbol);
    if (direct->address == NULL || ((row->way == CONTEXT_BYTE || row->way == PRECISION) && context == NULL)) {
        return 0;
    }
    switch (row->way) {
    case KEYS:
        usual_keys[row->first] = thread->keys ? thread->keys[row->first] ^ wanted : 0;
        return thread->keys != NULL;
    case GRAD_FLAGS:
        grad_byte = thread->grad ? learn_grad_byte(direct, thread->grad) : -1;
        return grad_byte >= 0;
    case MODES_OFF:
    case MODES_LENGTH:
        return thread->modes != NULL;
    case BYTE:
    case CONTEXT_BYTE: {
        const uint8_t *byte = byte_of_getter(direct->address, row->way == BYTE ? NULL : context);
        if (byte != NULL && (row->way == CONTEXT_BYTE || ((const uint8_t *)direct->address)[2] == 0x05)) {
            direct->address = byte;
            direct->way = AT_BYTE;
        }
        return 1;
    }
    default:
        return 1;
    }
}

/* Whether a field is one that nobody reads now, so that its two readers need not agree. */
static int idle(const Field *field, const Thread *thread)
{
    return (field->way == AUTOCAST_FLAG || field->way == AUTOCAST_TYPE) && usual(thread);
}

static int agrees(const Field *field, const Thread *thread)
{
    int failed = 0;
    uint64_t wanted = call_python(field, &failed);
    int same = !failed && (idle(field, thread) || read_field(field, thread, &failed) == wanted) && !failed;
    PyErr_Clear();
    return same;
}

/* Makes a field as direct as it can be, trying the rows of its name from `row` on. */
static void make_direct(Field *field, const Known *row)
{
    const Known *end = known + sizeof known / sizeof *known;
    const Thread *thread = this_thread();
    for (; row < end; row++) {
        int failed = 0;
        if (PyUnicode_CompareWithASCIIString(field->name, row->name) != 0) {
            continue;
        }
        Field direct = *field;
        direct.row = row;
        direct.way = row->way;
        uint64_t wanted = call_python(field, &failed);
        if (!failed && prepare(&direct, row, thread, wanted) && agrees(&direct, thread)) {
            *field = direct;
            return;
        }
        PyErr_Clear();
    }
    field->way = PYTHON;
}

static int take_reader(PyObject *item, int forced)
{
    PyObject *name, *reader;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "UO:reader", &name, &reader)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a reader of torch's state is (name, callable)");
        }
        return -1;
    }
    if (nfields == FIELDS) {
        PyErr_SetString(PyExc_ValueError, "too many fields of torch's state");
        return -1;
    }
    Field *field = &fields[nfields++];
    *field = (Field){Py_NewRef(name), Py_NewRef(reader), NULL, PYTHON, NULL};
    if (!forced) {
        make_direct(field, known);
    }
    return 0;
}

static void note_places(void)
{
    function_modes = dispatch_modes = -1;
    nbytes = nalways = gl_state_fallback = 0;
    for (int i = 0; i < nfields; i++) {
        const Field *field = &fields[i];
        function_modes = PyUnicode_CompareWithASCIIString(field->name, "function_modes") ? function_modes : i;
        dispatch_modes = PyUnicode_CompareWithASCIIString(field->name, "dispatch_modes") ? dispatch_modes : i;
        gl_state_fallback |= field->way == PYTHON;
        nbytes += field->way == AT_BYTE;
        nalways += field->way < DISPATCH;
        bytes_at[i] = field->address;
    }
}

/* Sorts the fields by the way in which they are read. */
static void put_in_order(void)
{
    for (int i = 1; i < nfields; i++) {
        Field field = fields[i];
        int at = i;
        for (; at > 0 && fields[at - 1].way > field.way; at--) {
            fields[at] = fields[at - 1];
        }
        fields[at] = field;
    }
    note_places();
}

static void forget_fields(void)
{
    while (nfields > 0) {
        nfields--;
        Py_CLEAR(fields[nfields].name);
        Py_CLEAR(fields[nfields].reader);
    }
    gl_state_fallback = 1;
}

/* The names of the fields that need Python, joined; "fast" when there are none. */
static PyObject *describe_fields(void)
{
    PyObject *slow = PyList_New(0), *comma = PyUnicode_FromString(", "), *text = NULL;
    int failed = slow == NULL || comma == NULL;
    for (int i = 0; i < nfields && !failed; i++) {
        failed = fields[i].way == PYTHON && PyList_Append(slow, fields[i].name) < 0;
    }
    if (!failed) {
        text = PyList_GET_SIZE(slow) ? PyUnicode_Join(comma, slow) : PyUnicode_FromString("fast");
    }
    Py_XDECREF(slow);
    Py_XDECREF(comma);
    return text;
}

static PyObject *init_torch_state(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"readers", "stacks_reader", "functorch_key", "set_grad", "force_fallback", NULL};
    PyObject *readers, *stacks, *setter;
    unsigned long long key;
    int forced = 0, failed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOKO|p:init_torch_state", names, &readers, &stacks, &key, &setter,
                                     &forced)) {
        return NULL;
    }
    PyObject *rows = PySequence_Fast(readers, "readers must be a sequence");
    if (rows == NULL) {
        return NULL;
    }
    context = call_for_address("_ZN2at13globalContextEv");
    Py_XSETREF(stacks_reader, Py_NewRef(stacks));
    Py_XSETREF(grad_setter, Py_NewRef(setter));
    functorch_key = key;
    forget_fields();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows) && !failed; i++) {
        failed = take_reader(PySequence_Fast_GET_ITEM(rows, i), forced) < 0;
    }
    Py_DECREF(rows);
    put_in_order();
    if (!failed && (function_modes < 0 || dispatch_modes < 0)) {
        PyErr_SetString(PyExc_ValueError, "the lengths of the stacks of modes are needed");
        failed = 1;
    }
    if (failed) {
        forget_fields();
        return NULL;
    }
    return describe_fields();
}

static PyObject *check_torch_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const Thread *thread = this_thread();
    for (int i = 0; i < nfields; i++) {
        Field *field = &fields[i];
        while (field->way != PYTHON && !agrees(field, thread)) {
            make_direct(field, field->row + 1);
        }
    }
    put_in_order();
    return describe_fields();
}

/* --- Python's face --- */

static PyObject *torch_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const Thread *thread = this_thread();
    uint64_t words[FIELDS];
    int failed = 0;
    if (nfields == 0) {
        return PyErr_Format(PyExc_RuntimeError, "init_torch_state() was not called");
    }
    for (int i = 0; i < nfields; i++) {
        words[i] = read_field(&fields[i], thread, &failed);
    }
    PyObject *stacks = failed || !stacks_in_use(words, thread) ? NULL : read_stacks();
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)words, nfields * (Py_ssize_t)sizeof(uint64_t));
    if (stacks != NULL) {
        PyBytes_ConcatAndDel(&bytes, stacks);
    }
    return bytes;
}

static PyObject *torch_state_fields(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *names = PyTuple_New(nfields);
    for (int i = 0; i < nfields && names != NULL; i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(fields[i].name));
    }
    return names;
}

static PyMethodDef functions[] = {
    {"init_torch_state", (PyCFunction)(void (*)(void))init_torch_state, METH_VARARGS | METH_KEYWORDS,
     "init_torch_state(readers, stacks_reader, functorch_key, set_grad, force_fallback=False) -> str\n\n"
     "Take the fields, as (name, callable giving an int); \"fast\", or the names of those read through Python."},
    {"check_torch_state", check_torch_state, METH_NOARGS,
     "check_torch_state() -> str\n\nCompare all fields with their readers now and give up what differs; returns as "
     "init_torch_state() does."},
    {"torch_state", torch_state, METH_NOARGS,
     "torch_state() -> bytes\n\nThe global torch state that every captured tensor operation reads."},
    {"torch_state_fields", torch_state_fields, METH_NOARGS,
     "torch_state_fields() -> tuple\n\nThe names of the 64-bit words at the start of torch_state(), in order."},
    {NULL, NULL, 0, NULL},
};

int gl_torch_state_init(PyObject *module) { return PyModule_AddFunctions(module, functions); }
