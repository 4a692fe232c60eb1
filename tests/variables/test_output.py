"""Output that is put off behind the graph, and output that is not: in order, once, guarded."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import traceback

import pytest
import torch

import graphlift
from graphlift.testing import check


def constants(x):
    print("a", 1, True, None, 2.5, (1, "b"), torch.float32, x.shape, f"{x.dtype} {len(x)}")
    y = x + 1
    print()
    print("b", "c", sep="-", end="!\n", flush=True)
    print("to stderr", file=sys.stderr)
    print("to stdout", file=None)
    return y * 2


def list_of_its_own(x):
    seen = [x.shape[0], "one"]
    print(seen, {"k": seen})
    seen.append(2)
    print(seen)
    return x + 1


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"


class Chatty(Named):
    def __str__(self):
        print("asked", self.name)
        return self.name


def named(x):
    print("it is", Named("mine"))
    return x + 1


def shout(text):
    print(text)
    return len(text)


def counted():
    for i in range(3):
        print("made", i)
        yield i


def inlined(x):
    total = shout("one") + shout("three")
    for i in counted():
        print("got", i)
        total += i
    [print("item", i) for i in range(2)]
    return x + total


def in_torchs_with(x):
    with torch.no_grad():
        print("inside", torch.is_grad_enabled())
        return x * 2


def in_a_branch(x, flag=True):
    if flag:
        print("yes")
    else:
        print("no")
    return x + 1


@pytest.mark.parametrize(
    "program",
    [constants, list_of_its_own, named, inlined, in_torchs_with, in_a_branch],
    ids=lambda p: p.__name__,
)
def test_known_text_needs_no_break(program):
    check(program, torch.ones(2), fullgraph=True)


def tensor(x):
    print("x is", x)
    return x + 1


def given_list(x, items):
    print(items)
    return x + 1


def unknown_options(x):
    print("a", "b", sep=str(x.sum().item()))
    return x + 1


def chatty(x):
    print("first", Chatty("inner"))
    return x + 1


def replaced_within(x):
    print("before")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        print("inside")
    print("after")
    return x + 1, text.getvalue()


def set_by_hand(x):
    kept = sys.stdout
    print("before")
    sys.stdout = io.StringIO()
    print("lost")
    sys.stdout = kept
    print("after")
    return x + 1


def handled(x):
    try:
        print("tried")
    except OSError:
        return x - 1
    finally:
        print("finally")
    return x + 1


def suppressed(x):
    with contextlib.suppress(ValueError):
        print("suppressed")
    return x + 1


BREAKING = [tensor, unknown_options, chatty, replaced_within, set_by_hand, handled, suppressed]


@pytest.mark.parametrize("program", BREAKING, ids=lambda p: p.__name__)
def test_what_must_happen_at_its_place_breaks(program):
    done = check(program, torch.ones(2), graphs=None, breaks=None)
    assert done.captured.breaks


def test_a_list_that_is_handed_in_is_not_guarded_by_its_text():
    items = []
    compiled = graphlift.compile(given_list, backend="eager")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        for n in range(12):
            items.append(n)
            compiled(torch.ones(2), items)
    assert text.getvalue() == "".join(f"{list(range(n + 1))}\n" for n in range(12))
    assert len(compiled.report()) <= 3


# --- values of each call ---------------------------------------------------------------------------------


def changing(x, n, name, rate):
    print("step", n, name, rate, sep="/")
    return x + 1


def test_numbers_and_strings_that_are_handed_in_print_anew_without_a_recompile():
    compiled = graphlift.compile(changing, backend="eager", fullgraph=True)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        for n in range(5):
            compiled(torch.ones(2), n, f"é{n}", n / 2)
    assert text.getvalue() == "".join(f"step/{n}/é{n}/{n / 2}\n" for n in range(5))
    assert len(compiled.report()) == 1


def sizes(x):
    print("shape", x.shape, x.shape[0] * 2)
    return x + 1


def test_sizes_that_change_do_not_fix_the_shape():
    compiled = graphlift.compile(sizes, backend="eager", fullgraph=True)
    with contextlib.redirect_stdout(io.StringIO()) as text:
        for n in range(2, 8):
            compiled(torch.ones(n, 3))
    assert text.getvalue() == "".join(f"shape torch.Size([{n}, 3]) {n * 2}\n" for n in range(2, 8))
    assert len(compiled.report()) == 2


# --- order with everything else ----------------------------------------------------------------------------


def between_writes(x, items):
    items.append(1)
    print("one")
    items.append(2)
    x.add_(1)
    print("two")
    return x


class Watching(io.StringIO):
    """A stream of the user's that looks at the program's state at each write."""

    def __init__(self, items, x):
        super().__init__()
        self.items = items
        self.x = x
        self.seen = []

    def write(self, text):
        self.seen.append((text, list(self.items), self.x.tolist()))
        return len(text)


def watched(fn):
    items, x = [], torch.zeros(1)
    stream = Watching(items, x)
    with contextlib.redirect_stdout(stream):
        fn(x, items)
    return stream.seen


def test_a_stream_of_the_users_sees_the_program_in_order():
    compiled = graphlift.compile(between_writes, backend="eager")
    expected = watched(between_writes)
    assert expected[0] == ("one", [1], [0.0])
    assert watched(compiled) == expected
    with contextlib.redirect_stdout(io.StringIO()) as text:  # another stream, another entry
        compiled(torch.zeros(1), [])
    assert text.getvalue() == "one\ntwo\n"
    assert watched(compiled) == expected


def test_a_write_method_set_on_the_stream_is_noticed():
    compiled = graphlift.compile(between_writes, backend="eager")
    for patched in (False, True, False):
        items, x, seen = [], torch.zeros(1), []
        stream = io.StringIO()
        if patched:
            stream.write = lambda text, items=items, x=x, seen=seen: seen.append(
                (text, list(items), x.item())
            )
        with contextlib.redirect_stdout(stream):
            compiled(x, items)
        if patched:
            assert [entry for entry in seen if entry[0] != "\n"] == [("one", [1], 0.0), ("two", [1, 2], 1.0)]
        else:
            assert stream.getvalue() == "one\ntwo\n"


def no_stream(x):
    print("nobody hears it")
    return x + 1


def test_without_a_stream_nothing_happens(monkeypatch):
    compiled = graphlift.compile(no_stream, backend="eager", fullgraph=True)
    monkeypatch.setattr(sys, "stdout", None)
    assert torch.equal(compiled(torch.ones(1)), torch.full((1,), 2.0))
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    compiled(torch.ones(1))
    assert stream.getvalue() == "nobody hears it\n"


def around_a_break(x):
    print("before")
    y = x + 1
    print("still before")
    if y.sum() > 0:
        print("behind")
        return y * 2
    return y


def test_a_cut_comes_behind_what_was_printed_before_it():
    check(around_a_break, torch.ones(2), graphs=2, breaks=1)
    explained = graphlift.explain(around_a_break)(torch.ones(2))
    assert [cut.id for cut in explained.break_reasons] == ["DATA_DEPENDENT_BRANCH"]


def looked_up(x, index):
    print("looking up")
    row = torch.nn.functional.embedding(index, x)
    print("found")
    return row * 2


def test_a_graph_that_fails_prints_what_came_before_the_failure_once():
    compiled = graphlift.compile(looked_up, backend="eager", fullgraph=True)
    for index, expected in (
        ([1], "looking up\nfound\n"),
        ([9], "looking up\n"),
        ([0], "looking up\nfound\n"),
    ):
        with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(IndexError):
            compiled(torch.ones(2, 2), torch.tensor(index))
        assert text.getvalue() == expected


def fails_behind_a_write(x, index):
    print("before")
    x.add_(1)
    return torch.nn.functional.embedding(index, x)


def fails_behind_a_draw(x, index):
    print("before")
    noise = torch.rand(2)
    return x[index] + noise


@pytest.mark.parametrize("program", [fails_behind_a_write, fails_behind_a_draw], ids=lambda p: p.__name__)
def test_a_print_is_not_lost_by_a_failure_that_cannot_be_run_again(program):
    compiled = graphlift.compile(program, backend="eager")
    for fn in (program, compiled, compiled):
        with contextlib.redirect_stdout(io.StringIO()) as text, pytest.raises(IndexError):
            fn(torch.ones(4, 2), torch.tensor([9, 2]))
        assert text.getvalue() == "before\n"


def raises(x):
    print("before")
    y = x + 1
    raise KeyError(y.shape[0])


def test_an_exception_that_leaves_prints_once():
    check(raises, torch.ones(2), graphs=None, breaks=None)


# --- streams that fail -------------------------------------------------------------------------------------


def accented(x):
    print("naïve")
    return x + 1


def ascii_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii")


def test_a_text_that_the_stream_cannot_write_fails_at_its_line():
    compiled = graphlift.compile(accented, backend="eager")
    for fn in (accented, compiled):
        with contextlib.redirect_stdout(ascii_stream()), pytest.raises(UnicodeEncodeError) as caught:
            fn(torch.ones(1))
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [(frame.name, frame.lineno - accented.__code__.co_firstlineno) for frame in frames[1:]] == [
            ("accented", 1)
        ]
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as stream:
        compiled(torch.ones(1))
        stream.flush()
        assert stream.buffer.getvalue() == "naïve\n".encode()


def test_a_closed_stream_fails_at_the_users_line():
    compiled = graphlift.compile(no_stream, backend="eager", fullgraph=True)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        compiled(torch.ones(1))
        stream.close()
        with pytest.raises(ValueError, match="closed file") as caught:
            compiled(torch.ones(1))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [(f.name, f.lineno) for f in frames[1:]] == [("no_stream", no_stream.__code__.co_firstlineno + 1)]


def test_a_real_file_gets_it(tmp_path):
    compiled = graphlift.compile(changing, backend="eager", fullgraph=True)
    with open(tmp_path / "out.txt", "w+", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        compiled(torch.ones(1), 1, "ü", 0.5)
        file.flush()
        file.seek(0)
        assert file.read() == "step/1/ü/0.5\n"


# --- logging -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def plain_logger():
    """A logger with no handler but one of Python's own; `LOGGED["text"]()` is what it wrote since asked last.

    No fixture, since the test runner puts handlers of its own on every logger before a test begins.
    """
    made = logging.getLogger("graphlift_tests.output")
    made.propagate = False
    made.setLevel(logging.INFO)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s:%(lineno)d %(message)s"))
    made.handlers[:] = [handler]

    def text():
        found = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return found

    LOGGED["text"] = text
    yield made
    made.handlers.clear()


LOGGED = {}
LOG = logging.getLogger("graphlift_tests.output")


def logged(x, n):
    LOG.debug("dropped %s", x)
    LOG.info("step %d of %s: %s", n, "ten", x.shape)
    y = x + 1
    print("between")
    LOG.log(
        logging.WARNING,
        "later",
    )
    return y


def helper(x):
    LOG.info("from the helper")
    return x + 1


def logs_in_a_helper(x, n):
    return helper(x) * 2


def logs_a_tensor(x, n):
    LOG.info("x is %s", x)
    return x + 1


def logs_nonsense(x, n):
    LOG.info("%d", "no number")
    return x + 1


def same_text(fn, compiled, *args):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        expected = fn(*args), LOGGED["text"]()
        found = compiled(*args), LOGGED["text"]()
    assert expected[1] == found[1]
    assert torch.equal(expected[0], found[0])
    return found[1]


def test_records_are_put_off_with_their_line_and_function():
    with plain_logger():
        compiled = graphlift.compile(logged, backend="eager", fullgraph=True)
        for n in range(3):
            first = logged.__code__.co_firstlineno
            step = f"INFO logged:{first + 2} step {n} of ten: torch.Size([2])\n"
            later = f"WARNING logged:{first + 5} later\n"
            assert same_text(logged, compiled, torch.ones(2), n) == step + later
        assert len(compiled.report()) == 1


def logs_exceptions(x, n):
    def fail():
        {}["key"]

    for place in range(2):
        try:
            fail()
        except KeyError:
            LOG.exception("caught at %d", place)
            LOG.error("again", exc_info=True)
            LOG.error("without", exc_info=False)
    try:
        try:
            fail()
        except KeyError as e:
            raise ValueError("behind") from e
    except ValueError:
        LOG.critical("chained", exc_info=True)
    return x + 1


@pytest.mark.parametrize("program", [logs_in_a_helper, logs_exceptions], ids=lambda p: p.__name__)
def test_records_of_called_functions_and_of_exceptions_are_put_off(program):
    with plain_logger():
        compiled = graphlift.compile(program, backend="eager", fullgraph=True)
        assert same_text(program, compiled, torch.ones(2), 0)
        assert same_text(program, compiled, torch.ones(2), 0)


class Told(Exception):
    def __str__(self):
        print("told")
        return "told"


def logs_a_users_exception(x, n):
    try:
        raise Told
    except Told:
        LOG.exception("caught")
    return x + 1


@pytest.mark.parametrize("program", [logs_a_users_exception, logs_a_tensor], ids=lambda p: p.__name__)
def test_records_that_are_made_at_their_place(program):
    with plain_logger():
        compiled = graphlift.compile(program, backend="eager")
        assert same_text(program, compiled, torch.ones(2), 0)
        assert compiled.report()[0].breaks[0].id == "INPUT_OUTPUT"


def test_functions_of_the_logging_module_and_adapters():
    def program(x, n):
        logging.warning("by the module %d", n)
        return x + 1

    root = logging.getLogger()
    with plain_logger() as logger:
        before = root.handlers[:]
        root.handlers[:] = logger.handlers
        try:
            compiled = graphlift.compile(program, backend="eager", fullgraph=True)
            assert "WARNING program:" in same_text(program, compiled, torch.ones(2), 3)
        finally:
            root.handlers[:] = before


def test_a_message_that_does_not_fit_is_left_to_logging(monkeypatch):
    with plain_logger():
        monkeypatch.setattr(logging, "raiseExceptions", False)
        compiled = graphlift.compile(logs_nonsense, backend="eager")
        same_text(logs_nonsense, compiled, torch.ones(2), 0)
        assert compiled.report()[0].breaks[0].id == "INPUT_OUTPUT"


class Keeping(logging.Handler):
    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        self.seen.append((record.getMessage(), record.lineno, torch.is_grad_enabled()))


def test_handlers_and_filters_of_the_users_are_noticed():
    with plain_logger() as logger:
        compiled = graphlift.compile(logged, backend="eager")
        assert same_text(logged, compiled, torch.ones(2), 0)
        keeping = Keeping()
        logger.addHandler(keeping)
        assert same_text(logged, compiled, torch.ones(2), 0)
        assert keeping.seen[:2] == keeping.seen[2:] and len(keeping.seen) == 4
        logger.removeHandler(keeping)
        logger.addFilter(lambda record: False)
        try:
            assert same_text(logged, compiled, torch.ones(2), 0) == ""
        finally:
            logger.filters.clear()
        assert same_text(logged, compiled, torch.ones(2), 0)
        logger.setLevel(logging.ERROR)
        assert same_text(logged, compiled, torch.ones(2), 0) == ""


def test_writes_to_streams_wait_with_what_is_printed():
    def program(x, stream):
        print("first")
        count = sys.stdout.write("second\n")
        sys.stdout.writelines(["third\n", "fourth\n"])
        print("to the stream", file=stream)
        stream.write("more")
        stream.writelines(str(i) for i in range(3))
        stream.flush()
        sys.stdout.flush()
        return x * count, stream

    check(program, torch.ones(2), io.StringIO(), fullgraph=True)


def test_what_a_stream_holds_is_asked_behind_its_writes():
    def program(x, stream):
        y = x + 1
        stream.write("text")
        return y * 2, stream.getvalue()

    check(program, torch.ones(2), io.StringIO("begin"), graphs=1, breaks=1)


@pytest.mark.parametrize("text", ["3", "x.sum()", "b'bytes'", "'a', 'b'"])
def test_only_known_text_is_written_late(text):
    names = {}
    exec(f"def program(x, stream):\n    y = x + 1\n    stream.write({text})\n    return y * 2", names)
    check(names["program"], torch.ones(2), io.StringIO(), graphs=None, breaks=None)


def test_a_write_that_could_be_caught_is_no_late_one():
    def program(x, stream):
        y = x + 1
        try:
            stream.write("text")
        except ValueError:
            return y
        return y * 2

    closed = io.StringIO()
    closed.close()
    compiled = graphlift.compile(program, backend="eager")
    assert compiled(torch.ones(2), io.StringIO()).tolist() == [4, 4]
    assert compiled(torch.ones(2), closed).tolist() == [2, 2]


def test_a_stream_with_a_write_of_its_own_is_called_at_its_place():
    class Loud(io.StringIO):
        def write(self, text):
            return super().write(text.upper())

    def program(x, stream):
        stream.write("text")
        stream.writelines(["a", "b"])
        return x * 2, stream

    check(program, torch.ones(2), Loud(), graphs=None, breaks=None, recompiles=None)
