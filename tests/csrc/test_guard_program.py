"""The guard program in C: building, running, references, deaths of what it watches, threads, fallbacks."""

import functools
import gc
import sys
import threading
import weakref

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from graphlift import _C
from graphlift.guards import torch_readers


def subject(a):
    return a


class Plain:
    def __init__(self, **attrs):
        self.__dict__.update(attrs)


def tensor_row(at, value):
    dtype, device, _, keys, grad, _, sizes, strides, _ = torch_readers.read_plainly(value)
    return ("tensor", at, weakref.ref(type(value)), keys, dtype, device, grad, sizes, strides)


# --- building ---


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([("nonsense", -1)], ValueError),
        ([("param", -1)], TypeError),
        ([("param", -1, -1)], ValueError),
        ([("param", -1, "x")], TypeError),
        ([("param",)], TypeError),
        ([3], TypeError),
        ([("item", 0, 0)], ValueError),
        ([("item", 5, 0)], ValueError),
        ([("param", -1, 0), ("length", 0, 3), ("item", 1, 0)], ValueError),
        ([("param", -1, 0), ("constant", 0, [])], TypeError),
        ([("param", -1, 0), ("type_is", 0, 3)], TypeError),
        ([("param", -1, 0), ("slot", 0, 3)], TypeError),
        ([("param", -1, 0), ("dict_keys", 0, "ab")], TypeError),
        ([("param", -1, 0), ("tensor", 0, int, 0, 0, 0, 0, (), ())], TypeError),
        ([("param", -1, 0), ("same", -1, 0, 7)], ValueError),
        ([("param", -1, 0), ("overlap", -1, (0, 3, 4, 0))], ValueError),
        ([("param", -1, 0), ("expression", -1, 1, "+")], ValueError),
        ([("param", -1, 0), ("expression", -1, 1, 2)], ValueError),
        ([("param", -1, 0), ("expression", -1, ("int", 3))], ValueError),
        ([("expression", -1, *range(40), *["+"] * 39)], ValueError),
        ([("expression", -1, 1 << 70)], OverflowError),
        ([("function_field", -1, "__globals__")], ValueError),
        ([("function", -1), ("function_field", 0, "__nothing__")], ValueError),
        ([("torch_state", -1, "text")], TypeError),
    ],
    ids=repr,
)
def test_what_makes_no_program_is_refused(rows, error):
    with pytest.raises(error):
        _C.GuardProgram(rows)


def test_outputs_must_be_accessors():
    with pytest.raises(ValueError, match="no accessor"):
        _C.GuardProgram([("param", -1, 0), ("length", 0, 1)], [1])


def test_bind_hands_out_what_was_read():
    program = _C.GuardProgram(
        [("param", -1, 0), ("type_is", 0, list), ("item", 0, 0), ("item", 0, 1), ("function", -1)], [3, 2, 4]
    )
    one, two = object(), object()
    assert program.bind(subject, ([one, two],)) == (two, one, subject)
    assert program.bind(subject, ([one],)) is None
    assert program.bind(subject, ((one, two),)) is None
    assert program.check(subject, ()) == 0
    assert program.check(subject, ((one, two),)) == 1
    assert _C.GuardProgram([]).bind(subject, ()) == ()
    assert len(program) == 5


def test_a_program_with_many_registers():
    values = [object() for _ in range(500)]
    rows = [("param", -1, 0), *(("item", 0, i) for i in range(500))]
    program = _C.GuardProgram(rows, range(1, 501))
    assert program.bind(subject, (values,)) == tuple(values)
    assert program.check(subject, (values[:300],)) == 301


# --- references ---


class Slotted:
    __slots__ = ("x",)


def everything():
    """A program with nodes of most kinds, and parameters for which it holds."""
    slotted = Slotted()
    slotted.x = marker = Plain(v=1)
    thing = Plain(x=marker, t=torch.zeros(3), name="".join(["n", "m"]), number=1 << 70)
    table = {"k": marker, 3: marker, (1, "x"): marker}
    tensor = torch.zeros(2, requires_grad=True) * 2
    rows = [
        ("param", -1, 0),
        ("type_is", 0, weakref.ref(Plain)),
        ("instance_dict", 0),
        ("dict_value", 2, "x"),
        ("is", 3, weakref.ref(marker)),
        ("dict_value", 2, "name"),
        ("constant", 5, "nm"),
        ("dict_value", 2, "number"),
        ("constant", 7, 1 << 70),
        ("dict_value", 2, "t"),
        tensor_row(9, thing.t),
        ("param", -1, 1),
        ("dict_keys", 11, ("k", 3, (1, "x"))),
        ("dict_value", 11, (1, "x")),
        ("key_at", 11, 1),
        ("param", -1, 2),
        ("class_slot", 15, Slotted.x),
        ("same", -1, 16, 13, 3),
        ("param", -1, 3),
        ("slot", 18, torch._C.TensorBase.grad_fn),
        ("slot", 18, torch._C.TensorBase.shape),
        ("constant", 20, torch.Size([2])),
        ("type", 0),
        ("type_lookup", 22, "__init__"),
        ("is", 23, weakref.ref(Plain.__init__)),
        ("distinct", -1, 0, 3, 11, 15),
        ("module", -1, "torch"),
        ("module_dict", 26),
        ("anchor", -1, weakref.ref(marker)),
        ("torch_state", -1, _C.torch_state()),
        ("expression", -1, ("size", 9, 0), 3, "=="),
        ("overlap", -1, (9, 0, 4, 0), (18, 1, 4, 0)),
        ("function", -1),
        ("function_field", 32, "__globals__"),
    ]
    return rows, [3, 13, 19, 20], (thing, table, slotted, tensor)


def counts(params, rows):
    objects = [*params, *vars(params[0]).values(), Plain, Slotted, subject, Plain.__init__, torch]
    objects += [item for row in rows for item in row]
    shared = (int, str, bool, type(None))  # small ones are used by everybody
    return [sys.getrefcount(item) for item in objects if type(item) not in shared]


@pytest.mark.parametrize("spoil", [False, True])
def test_references_are_balanced(spoil):
    rows, outputs, params = everything()
    bad = (params[0], params[1], params[2], torch.zeros(3))
    gc.collect()
    before = counts(params, rows)
    program = _C.GuardProgram(rows, outputs)
    assert program.check(subject, params) == -1
    held = counts(params, rows)
    for _ in range(1000):
        given = bad if spoil else params
        assert (program.bind(subject, given) is None) == spoil
        program.check(subject, given)
    assert counts(params, rows) == held
    for _ in range(100):
        _C.GuardProgram(rows, outputs)
        with pytest.raises(ValueError):
            _C.GuardProgram([*rows, ("nonsense", -1)], outputs)
        with pytest.raises(ValueError):
            _C.GuardProgram(rows, [1000])
    assert counts(params, rows) == held
    del program
    gc.collect()
    assert counts(params, rows) == before


def test_a_program_keeps_nothing_of_the_users_alive():
    rows, outputs, params = everything()
    program = _C.GuardProgram(rows, outputs)
    watched = weakref.ref(params[0]), weakref.ref(params[3])
    assert program.check(subject, params) == -1
    del rows, params
    gc.collect()
    assert [ref() for ref in watched] == [None, None]
    assert len(program)


# --- death and reuse of addresses ---


def test_a_dead_object_fails_the_guard_even_at_the_same_address():
    thing = Plain()
    address = id(thing)
    program = _C.GuardProgram([("param", -1, 0), ("is", 0, weakref.ref(thing))])
    assert program.check(subject, (thing,)) == -1
    del thing
    heirs = []
    for _ in range(10_000):
        heirs.append(Plain())
        if id(heirs[-1]) == address:
            break
    else:
        pytest.skip("the address was not given out again")
    assert program.check(subject, (heirs[-1],)) == 1
    assert program.check(subject, (None,)) == 1


def test_a_dead_class_fails_the_guard_even_at_the_same_address():
    program, address = None, 0

    def make():
        return type("Made", (), {})

    cls = make()
    address = id(cls)
    program = _C.GuardProgram([("param", -1, 0), ("type_is", 0, weakref.ref(cls))])
    assert program.check(subject, (cls(),)) == -1
    del cls
    gc.collect()
    heirs = [make() for _ in range(200)]
    for heir in heirs:
        assert program.check(subject, (heir(),)) == 1
    assert program.check(subject, (None,)) == 1
    assert address


def test_nodes_about_dead_things_fail():
    cls = type("Made", (), {"__slots__": ("x",)})
    key = Plain()
    thing = cls()
    thing.x = 1
    rows = [("param", -1, 0), ("class_slot", 0, cls.x)]
    program = _C.GuardProgram(rows)
    assert program.check(subject, (thing,)) == -1
    table = {key: 1}
    keyed = _C.GuardProgram([("param", -1, 0), ("dict_value", 0, weakref.ref(key))])
    ordered = _C.GuardProgram([("param", -1, 0), ("dict_keys", 0, (weakref.ref(key),))])
    anchored = _C.GuardProgram([("anchor", -1, weakref.ref(key))])
    for each in (keyed, ordered, anchored):
        assert each.check(subject, (table,)) == -1
    del cls, thing, key, table, rows
    gc.collect()
    assert program.check(subject, (3,)) == 1
    assert keyed.check(subject, ({3: 1},)) == 1
    assert ordered.check(subject, ({None: 1},)) == 1
    assert anchored.check(subject, (3,)) == 0
    with pytest.raises(ValueError, match="gone"):
        _C.GuardProgram([("param", -1, 0), ("dict_value", 0, weakref.ref(Plain()))])


# --- user code ---


def test_no_finalizer_runs_inside_a_program():
    """On 3.11 any allocation may start a collection, and making an instance dictionary allocates."""
    ran = []

    class Noisy:
        def __init__(self):
            self.me = self

        def __del__(self):
            ran.append(1)

    program = _C.GuardProgram([("param", -1, 0), ("instance_dict", 0), ("dict_value", 1, "x")])
    made = Plain.__new__(Plain)
    made.x = 1
    params = (made,)
    threshold = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            Noisy()
        gc.set_threshold(1)
        gc.enable()
        before = len(ran)
        answer = program.check(subject, params)
        after = len(ran)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
    assert answer == -1
    assert before == after
    gc.collect()
    assert len(ran) == 20


def test_collection_stays_off_where_it_was_off():
    gc.disable()
    try:
        made = Plain.__new__(Plain)
        made.x = 1
        _C.GuardProgram([("param", -1, 0), ("instance_dict", 0)]).check(subject, (made,))
        assert not gc.isenabled()
    finally:
        gc.enable()


# --- audit ---


def test_audit_sees_each_run_and_its_errors_come_out():
    seen = []
    program = _C.GuardProgram([("param", -1, 0), ("constant", 0, 3)], [0])
    program.set_audit(lambda *args: seen.append(args))
    assert program.check(subject, (3,)) == -1
    assert program.check(subject, (4,)) == 1
    assert program.bind(subject, (3,)) == (3,)
    assert seen == [(subject, (3,), -1), (subject, (4,), 1), (subject, (3,), -1)]

    def refuse(*args):
        raise KeyError("no")

    program.set_audit(refuse)
    with pytest.raises(KeyError):
        program.bind(subject, (3,))
    program.set_audit(None)
    assert program.bind(subject, (3,)) == (3,)


def test_an_audit_that_holds_the_program_is_collected():
    program = _C.GuardProgram([("param", -1, 0)])
    marker = Plain(program=program)
    program.set_audit(functools.partial(subject, marker))
    watched = weakref.ref(marker)
    del program, marker
    gc.collect()
    assert watched() is None


# --- threads ---


def test_threads_run_one_program_while_others_change_the_objects():
    rows, outputs, params = everything()
    program = _C.GuardProgram(rows, outputs)
    stop = threading.Event()
    answers = set()

    def run():
        while not stop.is_set():
            answers.add(program.check(subject, params))
            program.bind(subject, params)

    def change():
        while not stop.is_set():
            params[0].x, former = Plain(), params[0].x
            params[0].x = former
            params[1].setdefault("k", former)
            params[1].pop("k", None)

    threads = [threading.Thread(target=target) for target in (run, run, change, change)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        threading.Event().wait(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    names = {rows[answer][0] for answer in answers - {-1}}
    assert names <= {"dict_value", "is", "dict_keys", "key_at", "same", "distinct"}


# --- torch's state ---


class Functions(TorchFunctionMode):
    pass


class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Setting:
    """A setting of the process, changed inside the block."""

    def __init__(self, getter, setter, value):
        self.getter, self.setter, self.value = getter, setter, value

    def __enter__(self):
        self.former = self.getter()
        self.setter(self.value)

    def __exit__(self, *exc):
        self.setter(self.former)


class Attribute(Setting):
    def __init__(self, owner, name, value):
        super().__init__(lambda: getattr(owner, name), lambda v: setattr(owner, name, v), value)


def flag(name, value):
    return Setting(getattr(torch._C, f"_get_{name}"), getattr(torch._C, f"_set_{name}"), value)


STATES = {
    "no grad": torch.no_grad,
    "inference": torch.inference_mode,
    "forward grad": lambda: torch.autograd.forward_ad._set_fwd_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "function mode": Functions,
    "dispatch mode": Dispatches,
    "default device": lambda: torch.device("meta"),
    "functions off": torch._C.DisableTorchFunctionSubclass,
    "default dtype": lambda: Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "threads": lambda: Setting(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1),
    "deterministic": lambda: Setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "warn only": lambda: Setting(
        torch.is_deterministic_algorithms_warn_only_enabled,
        lambda on: torch._C._set_deterministic_algorithms(False, warn_only=on),
        True,
    ),
    "fill": lambda: Attribute(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "mkldnn": lambda: flag("mkldnn_enabled", False),
    "cudnn": lambda: flag("cudnn_enabled", False),
    "cudnn benchmark": lambda: flag("cudnn_benchmark", True),
    "cudnn deterministic": lambda: flag("cudnn_deterministic", True),
    "nnpack": lambda: Setting(torch._C._get_nnpack_enabled, torch._C._set_nnpack_enabled, False),
    "flash": lambda: Setting(torch._C._get_flash_sdp_enabled, torch._C._set_sdp_use_flash, False),
    "math": lambda: Setting(torch._C._get_math_sdp_enabled, torch._C._set_sdp_use_math, False),
    "mem": lambda: Setting(
        torch._C._get_mem_efficient_sdp_enabled, torch._C._set_sdp_use_mem_efficient, False
    ),
    "fp16": lambda: flag("cublas_allow_fp16_accumulation", True),
    "matmul precision": lambda: Setting(
        lambda: torch._C._get_fp32_precision_getter("mkldnn", "matmul"),
        lambda value: torch._C._set_fp32_precision_setter("mkldnn", "matmul", value),
        "bf16",
    ),
}


def state_program():
    return _C.GuardProgram([("torch_state", -1, _C.torch_state())])


def differs_inside(make):
    program = state_program()
    assert program.check(subject, ()) == -1
    with make():
        assert program.check(subject, ()) == 0
        inside = state_program()
        assert inside.check(subject, ()) == -1
    assert inside.check(subject, ()) == 0
    assert program.check(subject, ()) == -1


@pytest.mark.parametrize("name", STATES)
def test_state_notices(name):
    differs_inside(STATES[name])


@pytest.mark.parametrize("name", STATES)
def test_state_through_python_notices(name):
    with fallback():
        differs_inside(STATES[name])


def test_modes_are_told_apart_by_identity():
    with Functions():
        program = state_program()
        assert program.check(subject, ()) == -1
    for _ in range(50):  # new modes at the addresses of old ones
        with Functions():
            assert program.check(subject, ()) == 0
    mode = Functions()
    with mode:
        program = state_program()
    with mode:
        assert program.check(subject, ()) == -1
    with mode, mode:
        assert program.check(subject, ()) == 0


def test_state_notices_transforms():
    program = state_program()
    seen = []

    def inside(x):
        seen.append((program.check(subject, ()), state_program().check(subject, ())))
        return (x * x).sum()

    torch.func.grad(inside)(torch.ones(2))
    torch.func.vmap(inside)(torch.ones(2, 2))
    assert seen == [(0, -1), (0, -1)]


def test_autocast_dtypes_are_told_apart():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        program = state_program()
    with torch.autocast("cpu", dtype=torch.float16):
        assert program.check(subject, ()) == 0
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        assert program.check(subject, ()) == 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert program.check(subject, ()) == -1


def test_state_belongs_to_the_thread():
    program = state_program()
    seen = []

    def run():
        seen.append(program.check(subject, ()))
        with torch.no_grad():
            seen.append(program.check(subject, ()))

    with torch.no_grad():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert program.check(subject, ()) == 0
    assert seen == [-1, 0]


# --- fallbacks ---


class fallback:
    def __enter__(self):
        assert torch_readers.connect(force_fallback=True)[0] == "forced"

    def __exit__(self, *exc):
        assert torch_readers.connect() == ("fast", "fast")


def test_readers_are_fast_here():
    assert torch_readers.connect() == ("fast", "fast")


def test_tensors_through_python():
    kinds = [
        torch.zeros(2, 3),
        torch.zeros(3, 2).t(),
        torch.nn.Parameter(torch.zeros(2)),
        torch.eye(2).to_sparse(),
    ]
    kinds += [torch.zeros(2, dtype=dtype) for dtype in (torch.int8, torch.bfloat16, torch.complex64)]
    programs = [
        _C.GuardProgram([("param", -1, 0), tensor_row(0, kind)]) for kind in kinds if not kind.is_sparse
    ]
    dense = [kind for kind in kinds if not kind.is_sparse]
    fast = [[program.check(subject, (kind,)) for kind in kinds] for program in programs]
    read = [_C.read_metadata(kind) for kind in kinds], [_C.read_tensor(kind) for kind in kinds]
    placed = [_C.tensor_place(kind) for kind in dense]
    with fallback():
        assert [[program.check(subject, (kind,)) for kind in kinds] for program in programs] == fast
        assert ([_C.read_metadata(kind) for kind in kinds], [_C.read_tensor(kind) for kind in kinds]) == read
        assert [_C.tensor_place(kind) for kind in dense] == placed
        rows, outputs, params = everything()
        program = _C.GuardProgram(rows, outputs)
        before = counts(params, rows)
        for _ in range(100):
            assert program.check(subject, params) == -1
            assert program.bind(subject, params) is not None
        assert counts(params, rows) == before
    assert [program.check(subject, (kind,)) for program, kind in zip(programs, dense, strict=True)] == [
        -1
    ] * 6


def test_readers_refuse_what_is_no_tensor():
    for read in (_C.read_tensor, _C.read_metadata, _C.tensor_place):
        with pytest.raises(TypeError):
            read(3)


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_nested_tensors_have_no_plain_answer():
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    with pytest.raises((ValueError, RuntimeError)):
        _C.read_tensor(nested)
    program = _C.GuardProgram([("param", -1, 0), tensor_row(0, torch.zeros(2))])
    assert program.check(subject, (nested,)) == 1
