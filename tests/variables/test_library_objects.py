"""Bytearrays, arrays and streams in memory: made inside, passed in, changed, shared, failing."""

import array
import contextlib
import copy
import io
import struct

import pytest
import torch

import graphlift
from graphlift.testing import check

NAMES = {"array": array.array, "copy": copy, "io": io, "struct": struct}


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


def compare(statements, **expected):
    """Run statements about `a` between tensor operations; what they put into `r` is compared."""
    names = dict(NAMES)
    lines = "".join(f"        {line}\n" for line in statements.split("; "))
    exec(
        f"def program(x, n):\n    y = x + 1\n    r = []\n    try:\n{lines}"
        "    except Exception as error:\n        r.append((type(error).__name__, str(error)))\n"
        "    return y * 2, r, a",
        names,
    )
    expected.setdefault("breaks", 0)
    check(names["program"], torch.arange(3.0), 2, **expected)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "a = bytearray(); a.append(65); a.extend(b'bc'); "
            "a += b'd'; a[0:1] = b'zz'; r += [len(a), a[0], a[-1]]"
        ),
        "a = bytearray(b'hello'); a[::2] = b'XYZ'; del a[1]; del a[:1]; a.insert(1, 9); r.append(a.pop())",
        "a = bytearray(b'abc'); a.reverse(); a.remove(98); a *= n; r += [a * 2, a + b'x', b'x' + a, a % ()]",
        (
            "a = bytearray(5); a[n] = 255; r += list(a); "
            "r += [x for x in a if x], bytes(a), a == bytes(a), 255 in a"
        ),
        (
            "a = bytearray('äb', 'utf-8'); "
            "r += [a.decode(), str(a, 'latin-1'), repr(a), f'{a}', a.hex(':'), a.upper()]"
        ),
        (
            "a = bytearray([1, 2, n]); "
            "r += [sum(a), max(a), sorted(a), bytes(reversed(a)), a < b'z', bool(a), a != a]"
        ),
        "a = bytearray(b'a,b'); r += [a.split(b','), a.partition(b','), a.find(b'b'), a.startswith(b'a')]",
        "a = bytearray(b'-'); r += [a.join([b'x', a]), b'+'.join([a, b'y']), int(bytearray(b'12'))]",
        (
            "a = bytearray(i * i for i in range(n + 3)); r.append(a); "
            "a.extend(i for i in (1, 2)); a[1:2] = (7 for _ in a)"
        ),
        (
            "a = bytearray(b'xy'); b = copy.copy(a); b.append(1); "
            "c = copy.deepcopy(a); c.clear(); r += [b, c, b is a]"
        ),
        "a = bytearray(b'abc'); d = {'k': a}; d['k'].append(1); r += [d, d['k'] is a, [a, a]]; a.append(2)",
        (
            "a = bytearray(b'ab'); it = iter(a); r.append(next(it)); "
            "a.append(99); r += list(it); r.append(next(it, 'end'))"
        ),
        "a = bytearray.fromhex('ff00'); r += [a, type(a) is bytearray, isinstance(a, (bytes, bytearray))]",
        "a = bytearray(b'abc'); r.append(1); a.append(256)",
        "a = bytearray(b'abc'); a[0:2] = [1, 2, 300]",
        "a = bytearray(b'abc'); r.append(a[7])",
        "a = bytearray(b'abc'); r.append({a: 1})",
        "a = bytearray(b'abc'); a.extend([1, 'x'])",
        "a = bytearray(b'abc'); a['x'] = 1",
        "a = bytearray(b'abc'); r.append(a + 'x')",
        "a = bytearray(b'abc'); r.append('x' in a)",
        "a = bytearray(b''); a.pop()",
        "a = bytearray(b'abc'); a.nothing",
        "a = bytearray(b'abc'); a.nothing = 3",
        "a = None; bytearray('x')",
        "a = bytearray(b'abc'); r.append(a < 3)",
    ],
)
def test_a_bytearray_made_inside(statements):
    compare(statements)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "a = array('i', [1, 2]); a.append(n); a.extend([7, 8]); "
            "a += array('i', [9]); r += [len(a), a[0], list(a)]"
        ),
        (
            "a = array('d'); a.fromlist([0.5, n]); a.insert(0, -0.0); "
            "r += [a.pop(), a.tolist(), a.index(0.5), repr(a)]"
        ),
        (
            "a = array('B', b'abc'); a.frombytes(b'de'); "
            "a.byteswap(); r += [a.tobytes(), a.typecode, a.itemsize]"
        ),
        (
            "a = array('h', (i for i in range(n + 2))); "
            "a[1:2] = array('h', [5, 6]); del a[0]; a.reverse(); r.append(a[::2])"
        ),
        (
            "a = array('i', [1, 2]); b = copy.copy(a); b[0] = 7; "
            "c = copy.deepcopy(a); r += [b, c, a == b, a == c, a < b]"
        ),
        (
            "a = array('i', [3, 1]); a *= n; "
            "r += [sorted(a), sum(a), 3 in a, a.count(1), a + a, a * 2, bytes(a)]"
        ),
        "a = array('i', [1]); a.extend(i // (2 - i) for i in range(5))",
        "a = array('i', [1]); a.append('x')",
        "a = array('i', [1]); a.append(1 << 40)",
        "a = array('i', [1]); a[0:1] = [2]",
        "a = array('i', [1]); a += [2]",
        "a = array('i', [1]); a.extend(array('d', [2.0]))",
        "a = array('i', [1]); r.append(a[5])",
        "a = array('i', [1]); a.remove(5)",
        "a = None; array('y')",
        "a = None; array('i', 3)",
        "a = array('i', [1, 2]); r += [a == [1, 2], a != (), a == None]",
    ],
)
def test_an_array_made_inside(statements):
    compare(statements)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "a = io.StringIO(); a.write('ab'); a.writelines(['c', 'd']); "
            "print(1, n, sep='-', file=a); r.append(a.getvalue())"
        ),
        (
            "a = io.StringIO('one\\ntwo\\n'); "
            "r += [a.readline(), a.tell(), a.read(2), a.seek(0), list(a), a.read()]"
        ),
        (
            "a = io.StringIO('x'); a.seek(0, 2); a.write('y'); "
            "a.truncate(1); r += [a.getvalue(), a.closed, a.readable()]"
        ),
        "a = io.StringIO('a\\nb'); r += [line.strip() for line in a]; r.append(next(a, None))",
        (
            "a = io.StringIO(); print(end='', file=a); "
            "print('q', [1], {'k': n}, file=a, flush=True); r.append(a.getvalue())"
        ),
        "a = io.StringIO(); a.close(); r.append(a.closed); a.write('x')",
        "a = io.StringIO(); a.write(3)",
        "a = io.StringIO('x', newline='\\r\\n'); a.write('a\\nb'); r.append(a.getvalue())",
        "a = None; io.StringIO(newline='a')",
        "a = io.StringIO(); a.writelines(str(2 // (1 - i)) for i in range(3))",
        (
            "a = io.BytesIO(b'abcd'); "
            "r += [a.read(2), a.tell(), a.seek(1), a.write(b'ZZZZ'), a.getvalue(), a.getvalue()]"
        ),
        (
            "a = io.BytesIO(); a.write(bytearray(b'x')); "
            "a.write(struct.pack('<H', n)); r.append(a.getvalue().hex())"
        ),
        "a = io.BytesIO(b'a\\nb\\n'); r += [a.readlines(), a.read1(5), a.readline()]",
        "a = io.BytesIO(); a.write('x')",
    ],
)
def test_a_stream_made_inside(statements):
    compare(statements)


@pytest.mark.parametrize(
    "statements",
    [
        (
            "a = bytearray(8); struct.pack_into('<Hh', a, 1, n, -1); "
            "r += [struct.unpack_from('<H', a, 1), a.hex()]"
        ),
        (
            "a = array('B', bytes(8)); s = struct.Struct('<I'); "
            "s.pack_into(a, n, 77); r += [s.unpack_from(a, n), s.size]"
        ),
        (
            "a = list(struct.iter_unpack('<H', b'abcd')); "
            "s = struct.Struct('<H'); r += [s.format, list(s.iter_unpack(b'ab'))]"
        ),
        "a = bytearray(3); struct.pack_into('<I', a, 1, 5)",
        "a = bytearray(3); struct.pack_into('<I', b'abcd', 0, 5)",
        "a = struct.Struct('<I').pack(n); struct.Struct('?!')",
    ],
)
def test_packing(statements):
    broken = "b'abcd', 0, 5" in statements
    compare(statements, breaks=int(broken), graphs=1 + broken)


def test_what_is_printed_is_redirected_to_a_stream_made_inside():
    def program(x):
        out = io.StringIO()
        y = x * 2
        with contextlib.redirect_stdout(out):
            print("shape", tuple(x.shape))
            with contextlib.redirect_stderr(out):
                print("inner")
        return y, out.getvalue()

    check(program, torch.ones(2, 3), breaks=0)


def test_a_stream_is_a_context():
    def program(x):
        with io.StringIO() as out:
            out.write("text")
            y = x * len(out.getvalue())
        return y, out.closed

    check(program, torch.ones(2), breaks=0)


def test_changes_reach_the_object_that_was_passed_in():
    def program(x, data, other, numbers):
        data.append(7)
        other[0] += 1
        numbers[1] = len(data)
        same = data is other
        return x * data[0], data, same, numbers.tolist()

    data = bytearray(b"abc")
    numbers = array.array("i", [1, 2, 3])
    check(program, torch.ones(2), data, bytearray(b"abc"), numbers, breaks=0, recompiles=None)
    check(program, torch.ones(2), data, data, numbers, breaks=0, recompiles=None)


def test_contents_are_guarded_when_they_are_looked_into():
    def program(x, data, numbers):
        return x * data[0] * sum(numbers)

    first = (torch.ones(2), bytearray(b"abc"), array.array("i", [1, 2]))
    others = [
        (torch.ones(2), bytearray(b"abc"), array.array("i", [1, 2])),
        (torch.ones(2), bytearray(b"zbc"), array.array("i", [1, 2])),
        (torch.ones(2), bytearray(b"abc"), array.array("h", [1, 2])),
        (torch.ones(2), bytearray(b"abc"), array.array("i", [1, 5])),
        (torch.ones(2), b"abc", [1, 2]),
    ]
    check(program, *first, then=others, breaks=0, recompiles=None)


def test_contents_that_vary_are_not_captured_again_and_again():
    def program(x, data):
        y = x + 1
        data.append(1)
        return y * data[0]

    others = [(torch.ones(2), bytearray([number, 2])) for number in range(3, 12)]
    check(program, torch.ones(2), bytearray(b"abc"), then=others, breaks=0, recompiles=3)


def test_what_is_passed_on_is_not_looked_into():
    def program(x, data):
        return x * 2, data

    check(program, torch.ones(2), bytearray(b"a"), then=[(torch.ones(2), bytearray(b"b"))], recompiles=0)


def test_one_that_somebody_looks_at_cannot_be_resized():
    class Holder:
        def __init__(self, look):
            self.data = bytearray(b"abc")
            self.view = memoryview(self.data) if look else None

    def program(x, holder):
        y = x + 1
        holder.data.append(5)
        return y

    compiled = graphlift.compile(program, backend="eager")
    free, looked_at = Holder(False), Holder(True)
    compiled(torch.ones(2), free)
    assert free.data == b"abc\x05"
    with pytest.raises(BufferError):
        compiled(torch.ones(2), looked_at)
    assert looked_at.data == b"abc"


def test_a_cut_makes_them_real_and_goes_on_with_them():
    def program(x):
        data, numbers, text = bytearray(b"ab"), array.array("d", [0.5]), io.StringIO("begin")
        alias = [data]
        text.seek(0, 2)
        graphlift.graph_break()
        data.append(1)
        numbers.append(2.0)
        text.write("end")
        return x * len(alias[0]), data, numbers, text.getvalue()

    check(program, torch.ones(2), graphs=None, breaks=None)


def test_what_a_cut_takes_back_is_taken_back():
    def program(x, flag):
        data = bytearray(b"ab")
        try:
            data.append(1)
            data.extend([x.sum().item(), 3])
        except TypeError as error:
            data.append(len(str(error)))
        return x + 1, data

    check(program, torch.ones(2), True, graphs=None, breaks=None)


def test_a_tensor_cannot_be_an_item():
    def program(x):
        data = bytearray(b"ab")
        data.append(x.sum())
        return data

    check(program, torch.ones(2, dtype=torch.int64), graphs=None, breaks=None)


def test_a_tensor_in_the_memory_of_a_bytearray_sees_what_is_written():
    def program(x):
        data = bytearray(b"ab")
        tensor = torch.frombuffer(data, dtype=torch.uint8)
        data[0] = 7
        y = tensor + x
        tensor.add_(1)
        return y, data[0], data

    check(program, torch.ones(2), graphs=None, breaks=None)


def test_a_tensor_that_comes_to_lie_in_it_is_noticed():
    def program(tensor, data):
        data[0] = data[1] + 1
        return tensor * 2

    compiled = graphlift.compile(program, backend="eager")
    data = bytearray(b"ab")
    assert compiled(torch.zeros(2, dtype=torch.uint8), data).tolist() == [0, 0]
    assert compiled(torch.frombuffer(data, dtype=torch.uint8), data).tolist() == [198, 196]


def test_two_bytearrays_that_become_one_are_noticed():
    def program(x, first, second):
        first.append(1)
        return x * len(second)

    calls = [(torch.ones(2), data, data) for data in (bytearray(b"ab"), bytearray(b"ab"))]
    check(program, torch.ones(2), bytearray(b"ab"), bytearray(b"ab"), then=calls, breaks=0, recompiles=None)


def look(data):
    return memoryview(data)


@pytest.mark.parametrize("made_by", [memoryview, look])
@pytest.mark.parametrize("inside", [False, True])
def test_a_view_that_nothing_reads_keeps_its_object_from_being_resized(made_by, inside):
    def program(x, given):
        y = x + 1
        data = bytearray(3) if inside else given
        view = made_by(data)  # noqa: F841
        try:
            data.append(1)
        except BufferError as error:
            return y * 2, str(error), data
        return y * 2, None, data

    check(program, torch.ones(2), bytearray(3), graphs=None, breaks=None)
