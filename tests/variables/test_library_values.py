"""Values and pure functions of the standard library inside captured functions."""

import base64
import datetime
import fnmatch
import html
import json
import posixpath
import re
import shlex
import struct
import textwrap
import urllib.parse
import zlib
import zoneinfo

import pytest
import torch

import graphlift
from graphlift.testing import check

WORD = re.compile(r"(?P<word>\w+),(\d+)?")
TABLE = {"b": [1, 2.5, None, True], "a": {"x": 'é"\n'}}
NAMES = {
    "dt": datetime,
    "path": posixpath,
    **{m.__name__: m for m in (base64, datetime, fnmatch, html, json, posixpath, re, shlex, struct)},
    **{"textwrap": textwrap, "urllib": urllib, "zlib": zlib, "WORD": WORD, "TABLE": TABLE},
}


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


def compare(expression, breaks):
    names = dict(NAMES)
    exec(f"def program(x, a):\n    y = x + 1\n    r = {expression}\n    return y * 2, r, repr(r)", names)
    calls = [(torch.arange(3.0), number) for number in (2, 3, 5)]
    graphs = 1 if breaks == 0 else None
    check(names["program"], torch.arange(3.0), 1, then=calls, graphs=graphs, breaks=breaks, recompiles=None)


@pytest.mark.parametrize(
    "expression",
    [
        "dt.timedelta(days=a, hours=5), dt.timedelta(1) * a, a * dt.timedelta(1)",
        "dt.timedelta(2) / dt.timedelta(hours=a), -dt.timedelta(a), abs(dt.timedelta(-a))",
        "dt.datetime(2024, 1, a, 5) + dt.timedelta(a), dt.date(2024, 2, a).isoformat()",
        "dt.datetime(2024, 1, 1) < dt.datetime(2024, 1, a), dt.date(2024, a, 1).weekday()",
        "dt.datetime.fromisoformat('2024-01-01T10:00:00').replace(year=2025), dt.time(a).hour",
        "str(dt.datetime(2024, 1, a)), f'{dt.date(2024, 1, a)}', dt.date.fromordinal(9 + a)",
        "{dt.date(2024, 1, 1): a}[dt.date(2024, 1, 1)], bool(dt.timedelta(0))",
        "sorted([dt.date(2024, 3, 1), dt.date(2024, a, 1)]), dt.date(2024, 1, 1) == a",
        "re.match(r'(\\w+)', 'ab cd').group(1), re.search('b', 'abc').start() + a",
        "re.findall(r'\\d+', 'a1b22'), re.subn('a', 'b', 'aa')",
        "re.sub('a', 'b', 'aaa', count=a), re.split(',', 'a,b'), re.search('z', 'a') is None",
        "WORD.match('foo,12').groupdict(), WORD.match('foo,12')['word'], WORD.pattern",
        "WORD.match('foo,12')[0], WORD.groups, WORD.match('foo,12').expand(r'<\\1>')",
        "[m.span() for m in WORD.finditer('a,1 b,2')], WORD.fullmatch('foo,12').lastgroup",
        "json.dumps(TABLE), json.dumps([a, 1.5, None], separators=(',', ':'))",
        "json.loads('[1, {\"a\": null}]'), json.loads('1.5') + a",
        "html.escape('<'), path.join('a', 'b'), path.splitext('a.b'), path.basename('/a/b'), path.isabs('/')",
        "textwrap.wrap('aa bb cc', 5), textwrap.dedent('  a\\n  b'), shlex.split('a \"b c\"')",
        "base64.b64encode(b'ab'), base64.b64decode('YWI='), zlib.decompress(zlib.compress(b'abc'))",
        "urllib.parse.quote('a b'), fnmatch.fnmatch('a.py', '*.py'), struct.unpack_from('<h', b'abcdef', 2)",
    ],
)
def test_computed_at_once(expression):
    compare(expression, breaks=0)


@pytest.mark.parametrize(
    "expression",
    [
        "dt.date(2024, 1, 1).strftime('%A'), f'{dt.date(2024, 1, 1):%A}'",
        "dt.datetime(2024, 1, 1).timestamp()",
        "dt.datetime(2024, 1, 1).now() > dt.datetime(2024, 1, 1)",
    ],
)
def test_what_asks_the_clock_the_zone_or_the_program_breaks(expression):
    compare(expression, breaks=None)
    names = dict(NAMES)
    exec(f"def program(x, a):\n    y = x + 1\n    r = {expression}\n    return y * 2, r", names)
    assert graphlift.explain(names["program"])(torch.ones(2), 1).graph_break_count > 0


def test_errors_of_library_functions_have_their_frames():
    def program(x):
        y = x + 1
        try:
            json.loads("{bad")
        except ValueError as error:
            trace, names = error.__traceback__, []
            while trace is not None:
                names.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            return y, names, str(error)

    check(program, torch.ones(2), graphs=None, breaks=None)


def test_another_pattern_is_seen():
    def program(x, pattern):
        return x * 2 if pattern.match("abc") else x + 1

    x = torch.ones(2)
    patterns = [re.compile("a"), re.compile("b"), re.compile("a")]
    compiled = graphlift.compile(program, backend="eager")
    assert [compiled(x, p).tolist() for p in patterns] == [program(x, p).tolist() for p in patterns]


def test_values_as_keys():
    table = {}

    def program(x, n):
        table[datetime.date(2024, 1, n)] = n
        return x * len(table)

    compiled = graphlift.compile(program, backend="eager")
    assert [compiled(torch.ones(1), n).item() for n in (1, 1, 2, 3)] == [1.0, 1.0, 2.0, 3.0]
    assert list(table) == [datetime.date(2024, 1, n) for n in (1, 2, 3)]


ZONES = [None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=2)), datetime.timezone.max]
MOMENTS = [
    datetime.date(2024, 2, 29),
    datetime.timedelta(3, 4, 5),
    datetime.time(1, 2, 3, 4, fold=1),
    *[datetime.datetime(2024, 5, 6, 7, 8, 9, 10, zone) for zone in ZONES],
    datetime.timezone(datetime.timedelta(hours=1), "name"),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_a_moment_that_is_handed_in_is_known_and_guarded(moment):
    def program(x, when, others):
        y = x + 1
        return y * 2, str(when), when == others[0], isinstance(when, datetime.date), when is others[0], when

    first = (torch.ones(2), moment, [moment])
    check(program, *first, breaks=0, recompiles=0)
    check(
        program,
        *first,
        then=[(torch.ones(2), each, [moment]) for each in MOMENTS],
        graphs=None,
        breaks=None,
        recompiles=None,
    )


def test_moments_that_vary_are_not_captured_again_and_again():
    def program(x, when):
        y = x + 1
        return y * when.day, when + datetime.timedelta(1)

    days = [(torch.ones(2), datetime.datetime(2024, 1, day)) for day in range(3, 12)]
    check(program, torch.ones(2), datetime.datetime(2024, 1, 2), then=days, breaks=0, recompiles=2)


def test_a_zone_whose_offset_changes():
    zone = zoneinfo.ZoneInfo("UTC")

    def program(x, when):
        y = x + 1
        return y * when.hour, when.utcoffset(), str(when)

    check(program, torch.ones(2), datetime.datetime(2024, 1, 2, 3, tzinfo=zone), graphs=None, breaks=None)


def test_moments_that_the_library_keeps_are_themselves():
    def program(x):
        when = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
        return x + 1, datetime.timezone.max, datetime.date.min, datetime.UTC, when, when.tzinfo

    compiled = graphlift.compile(program, backend="eager")
    plain, found = program(torch.ones(2)), compiled(torch.ones(2))
    assert [value is other for value, other in zip(plain[1:], found[1:], strict=True)] == [True] * 3 + [
        False,
        True,
    ]
    check(program, torch.ones(2), graphs=None, breaks=0)


def test_substitution_by_a_function():
    def shown(match):
        return "<" + match.group() + ">"

    def substitutes(x):
        digits, seen = re.compile(r"\d"), []
        try:
            digits.sub(lambda match: 3, "1a2")
        except TypeError as error:
            seen.append(str(error))
        counts = [digits.subn(shown, "a1b2c3", count) for count in (-1, 0, 1, 2, 9)]
        return (
            counts,
            re.sub("x*", shown, "axxb"),
            re.sub("", shown, "ab"),
            digits.sub(shown, ""),
            seen,
            x * 2,
        )

    check(substitutes, torch.ones(2))
