/* The check of a relation between numbers: ints, floats and the geometry of tensors, in postfix form.
 *
 * Exact or not at all: what does not fit 64 bits, or what floating point cannot tell exactly, makes the guard fail. */

#include "node.h"

#include "../tensor_reader.h"

#include <math.h>
#include <string.h>

typedef struct {
    int is_float;
    int64_t i;
    double d;
} Number;

typedef int (*Operation)(Number *stack); /* works on stack[-1] and stack[-2]; 0: no exact answer */

enum { STACK = 32 };
static const int64_t EXACT = (int64_t)1 << 53; /* ints up to here are floats as well */

/* --- operations: one or two operands on top of the stack, the result takes the lowest one's place --- */

static int to_double(const Number *n, double *out)
{
    *out = n->is_float ? n->d : (double)n->i;
    return n->is_float || (n->i <= EXACT && n->i >= -EXACT);
}

static int put_int(Number *at, int64_t value)
{
    *at = (Number){0, value, 0.0};
    return 1;
}

static int put_float(Number *at, double value)
{
    *at = (Number){1, 0, value};
    return 1;
}

static int mixed(const Number *s) { return s[-1].is_float || s[-2].is_float; }

static int both_doubles(const Number *s, double *a, double *b) { return to_double(&s[-2], a) && to_double(&s[-1], b); }

#define ARITHMETIC(name, overflow, sign)                                                                               \
    static int op_##name(Number *s)                                                                                    \
    {                                                                                                                  \
        double a, b;                                                                                                   \
        int64_t result;                                                                                                \
        if (!mixed(s)) {                                                                                               \
            return !overflow(s[-2].i, s[-1].i, &result) && put_int(&s[-2], result);                                    \
        }                                                                                                              \
        return both_doubles(s, &a, &b) && put_float(&s[-2], a sign b);                                                 \
    }
ARITHMETIC(add, __builtin_add_overflow, +)
ARITHMETIC(sub, __builtin_sub_overflow, -)
ARITHMETIC(mul, __builtin_mul_overflow, *)

#define COMPARISON(name, sign)                                                                                         \
    static int op_##name(Number *s)                                                                                    \
    {                                                                                                                  \
        double a, b;                                                                                                   \
        if (!mixed(s)) {                                                                                               \
            return put_int(&s[-2], s[-2].i sign s[-1].i);                                                              \
        }                                                                                                              \
        return both_doubles(s, &a, &b) && put_int(&s[-2], a sign b);                                                   \
    }
COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

/* Quotient and remainder as Python rounds them, towards minus infinity. */
static int int_divmod(const Number *s, int64_t *quotient, int64_t *remainder)
{
    int64_t a = s[-2].i, b = s[-1].i;
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        return 0;
    }
    *quotient = a / b;
    *remainder = a % b;
    if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
        *quotient -= 1;
        *remainder += b;
    }
    return 1;
}

/* As Objects/floatobject.c does it. */
static int float_divmod(const Number *s, double *quotient, double *remainder)
{
    double a, b;
    if (!both_doubles(s, &a, &b) || b == 0.0) {
        return 0;
    }
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0.0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    if (div != 0.0) {
        double floored = floor(div);
        *quotient = div - floored > 0.5 ? floored + 1.0 : floored;
    } else {
        *quotient = copysign(0.0, a / b);
    }
    *remainder = mod;
    return 1;
}

static int op_floordiv(Number *s)
{
    int64_t iq, ir;
    double fq, fr;
    if (!mixed(s)) {
        return int_divmod(s, &iq, &ir) && put_int(&s[-2], iq);
    }
    return float_divmod(s, &fq, &fr) && put_float(&s[-2], fq);
}

static int op_mod(Number *s)
{
    int64_t iq, ir;
    double fq, fr;
    if (!mixed(s)) {
        return int_divmod(s, &iq, &ir) && put_int(&s[-2], ir);
    }
    return float_divmod(s, &fq, &fr) && put_float(&s[-2], fr);
}

static int op_ceildiv(Number *s)
{
    int64_t quotient, remainder;
    return !mixed(s) && int_divmod(s, &quotient, &remainder) && put_int(&s[-2], quotient + (remainder != 0));
}

static int op_truediv(Number *s)
{
    double a, b;
    return both_doubles(s, &a, &b) && b != 0.0 && put_float(&s[-2], a / b);
}

static int int_pow(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t result = 1;
    if (exponent < 0) {
        return 0;
    }
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) {
            return 0;
        }
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            return 0;
        }
    }
    *out = result;
    return 1;
}

static int op_pow(Number *s)
{
    double a, b;
    int64_t result;
    if (!mixed(s)) {
        return int_pow(s[-2].i, s[-1].i, &result) && put_int(&s[-2], result);
    }
    if (!both_doubles(s, &a, &b) || (a < 0.0 && b != floor(b))) {
        return 0;
    }
    double power = pow(a, b);
    return isfinite(power) && put_float(&s[-2], power);
}

/* -1, 0, 1, or 2 where no exact answer exists or one is nan */
static int order(const Number *s)
{
    double a, b;
    if (!mixed(s)) {
        return (s[-2].i > s[-1].i) - (s[-2].i < s[-1].i);
    }
    if (!both_doubles(s, &a, &b) || isnan(a) || isnan(b)) {
        return 2;
    }
    return (a > b) - (a < b);
}

static int op_min(Number *s)
{
    int sign = order(s);
    if (sign == 1) {
        s[-2] = s[-1];
    }
    return sign != 2;
}

static int op_max(Number *s)
{
    int sign = order(s);
    if (sign == -1) {
        s[-2] = s[-1];
    }
    return sign != 2;
}

static int truth(const Number *n) { return n->is_float ? n->d != 0.0 : n->i != 0; }

/* Two floats that differ in nothing, -0.0 and nan included. */
static int op_same(Number *s)
{
    int same = s[-1].is_float && s[-2].is_float && memcmp(&s[-1].d, &s[-2].d, sizeof(double)) == 0;
    return put_int(&s[-2], same);
}

static int op_and(Number *s) { return put_int(&s[-2], truth(&s[-2]) && truth(&s[-1])); }
static int op_or(Number *s) { return put_int(&s[-2], truth(&s[-2]) || truth(&s[-1])); }
static int op_not(Number *s) { return put_int(&s[-1], !truth(&s[-1])); }
static int op_bitand(Number *s) { return !mixed(s) && put_int(&s[-2], s[-2].i & s[-1].i); }
static int op_bitor(Number *s) { return !mixed(s) && put_int(&s[-2], s[-2].i | s[-1].i); }
static int op_bitxor(Number *s) { return !mixed(s) && put_int(&s[-2], s[-2].i ^ s[-1].i); }

static int op_lshift(Number *s)
{
    int64_t result;
    if (mixed(s) || s[-1].i < 0 || s[-1].i > 62) {
        return 0;
    }
    return !__builtin_mul_overflow(s[-2].i, (int64_t)1 << s[-1].i, &result) && put_int(&s[-2], result);
}

static int op_rshift(Number *s)
{
    if (mixed(s) || s[-1].i < 0) {
        return 0;
    }
    return put_int(&s[-2], s[-2].i >> (s[-1].i > 63 ? 63 : s[-1].i));
}

static int op_neg(Number *s)
{
    if (s[-1].is_float) {
        return put_float(&s[-1], -s[-1].d);
    }
    return s[-1].i != INT64_MIN && put_int(&s[-1], -s[-1].i);
}

static int op_abs(Number *s)
{
    if (s[-1].is_float) {
        return put_float(&s[-1], fabs(s[-1].d));
    }
    return s[-1].i >= 0 || op_neg(s);
}

static int op_float(Number *s)
{
    double value;
    return to_double(&s[-1], &value) && put_float(&s[-1], value);
}

static int rounded(Number *s, double (*how)(double))
{
    if (!s[-1].is_float) {
        return 1;
    }
    double value = how(s[-1].d);
    return value >= -9.2e18 && value <= 9.2e18 && put_int(&s[-1], (int64_t)value);
}

static int op_trunc(Number *s) { return rounded(s, trunc); }
static int op_floor(Number *s) { return rounded(s, floor); }
static int op_ceil(Number *s) { return rounded(s, ceil); }
static int op_round(Number *s) { return rounded(s, nearbyint); } /* half to even, the mode nobody changes */

static const struct {
    const char *name;
    int operands;
    Operation run;
} operations[] = {
    {"+", 2, op_add},       {"-", 2, op_sub},        {"*", 2, op_mul},     {"//", 2, op_floordiv},
    {"%", 2, op_mod},       {"ceildiv", 2, op_ceildiv}, {"/", 2, op_truediv}, {"**", 2, op_pow},
    {"min", 2, op_min},     {"max", 2, op_max},      {"==", 2, op_eq},     {"!=", 2, op_ne},
    {"<", 2, op_lt},        {"<=", 2, op_le},        {">", 2, op_gt},      {">=", 2, op_ge},
    {"and", 2, op_and},     {"or", 2, op_or},        {"not", 1, op_not},   {"&", 2, op_bitand},
    {"|", 2, op_bitor},     {"^", 2, op_bitxor},     {"<<", 2, op_lshift}, {">>", 2, op_rshift},
    {"neg", 1, op_neg},     {"abs", 1, op_abs},      {"float", 1, op_float}, {"trunc", 1, op_trunc},
    {"floor", 1, op_floor}, {"ceil", 1, op_ceil},    {"round", 1, op_round}, {"same", 2, op_same},
};

/* --- the program --- */

typedef enum { PUSH_CONSTANT, PUSH_INT, PUSH_FLOAT, PUSH_SIZE, PUSH_STRIDE, PUSH_OFFSET, OPERATE } StepKind;

typedef struct {
    StepKind kind;
    int operands;
    int32_t value; /* register */
    int64_t dim;
    Number number;
    Operation run;
} Step;

static int push_python_number(const Step *step, PyObject *value, Number *at)
{
    int overflow;
    if (step->kind == PUSH_FLOAT) {
        return PyFloat_CheckExact(value) && put_float(at, PyFloat_AS_DOUBLE(value));
    }
    if (!PyLong_CheckExact(value)) {
        return 0;
    }
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && put_int(at, number);
}

static int push_geometry(const Step *step, PyObject *value, Number *at)
{
    GlTensor now;
    GlTensorCopies copies;
    if (!gl_is_tensor(value) || !gl_tensor_read(value, &now, &copies)) {
        return 0;
    }
    if (step->kind == PUSH_OFFSET) {
        return now.offset >= 0 && put_int(at, now.offset);
    }
    const int64_t *numbers = step->kind == PUSH_SIZE ? now.sizes : now.strides;
    return numbers != NULL && step->dim < now.ndim && put_int(at, numbers[step->dim]);
}

static int push(const Step *step, const GlRun *run, Number *at)
{
    if (step->kind == PUSH_CONSTANT) {
        *at = step->number;
        return 1;
    }
    PyObject *value = run->values[step->value];
    return step->kind <= PUSH_FLOAT ? push_python_number(step, value, at) : push_geometry(step, value, at);
}

static int run_expression(const GlNode *node, GlRun *run)
{
    Number stack[STACK + 1], *top = stack;
    const Step *step = node->data, *end = step + node->number;
    for (; step < end; step++) {
        if (step->kind != OPERATE) {
            if (!push(step, run, top)) {
                return 0;
            }
            top++;
        } else {
            if (!step->run(top)) {
                return 0;
            }
            top -= step->operands - 1;
        }
    }
    return truth(&stack[0]);
}

/* --- building --- */

static int take_operation(Step *step, PyObject *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (PyUnicode_CompareWithASCIIString(name, operations[i].name) == 0) {
            step->kind = OPERATE;
            step->operands = operations[i].operands;
            step->run = operations[i].run;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "no operation of an expression: %R", name);
    return -1;
}

/* A tuple (kind, node index[, dimension]). */
static int take_input(Step *step, const GlBuild *build, PyObject *row)
{
    static const char *const kinds[] = {"", "int", "float", "size", "stride", "offset"};
    const char *kind;
    PyObject *index;
    Py_ssize_t dim = 0;
    if (!PyArg_ParseTuple(row, "sO|n", &kind, &index, &dim)) {
        return -1;
    }
    step->dim = dim;
    step->value = gl_register(build, index);
    for (int i = PUSH_INT; i <= PUSH_OFFSET; i++) {
        if (strcmp(kinds[i], kind) == 0 && dim >= 0) {
            step->kind = (StepKind)i;
            return step->value < 0 ? -1 : 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "no input of an expression: %R", row);
    return -1;
}

static int take_step(Step *step, const GlBuild *build, PyObject *item)
{
    step->kind = PUSH_CONSTANT;
    if (PyUnicode_Check(item)) {
        return take_operation(step, item);
    }
    if (PyTuple_Check(item)) {
        return take_input(step, build, item);
    }
    if (PyFloat_Check(item)) {
        put_float(&step->number, PyFloat_AS_DOUBLE(item));
        return 0;
    }
    put_int(&step->number, PyLong_AsLongLong(item));
    return PyErr_Occurred() ? -1 : 0;
}

/* operands: numbers, inputs and names of operations, in postfix order */
static int build_expression(GlNode *node, GlBuild *build, PyObject *const *operands, Py_ssize_t count)
{
    Step *steps = PyMem_Calloc((size_t)count + 1, sizeof(Step));
    int depth = 0;
    if (steps == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    node->data = steps;
    node->number = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (take_step(&steps[i], build, operands[i]) < 0) {
            return -1;
        }
        int needed = steps[i].kind == OPERATE ? steps[i].operands : 0;
        if (depth < needed || depth - needed + 1 > STACK) {
            PyErr_SetString(PyExc_ValueError, "an expression is not in postfix form or too deep");
            return -1;
        }
        depth += 1 - needed;
    }
    if (depth != 1) {
        PyErr_SetString(PyExc_ValueError, "an expression leaves exactly one value");
        return -1;
    }
    return 0;
}

const GlOp gl_expression_ops[] = {
    {"expression", GL_ROOT, -1, run_expression, build_expression, NULL, NULL},
    {NULL, 0, 0, NULL, NULL, NULL, NULL},
};
