"""What programs are made of: a table of expressions by the kind of their value, and one of simple statements.

One template a line. A number before it is its weight (1 if there is none), ``!`` says that it breaks a graph.
What stands in angle brackets is filled in: ``<T>`` by any expression of kind T, ``<T!>`` by the name of a
variable that may be assigned, ``<T?>`` by the name of any variable, ``<i>`` and other small letters by
literals, ``<@v>`` by a name that is used nowhere else.

Kinds: T tensor, I int, F float, B bool, S str, LT and LI lists of tensors and ints, DT and DI dictionaries of
strings to tensors and ints, SI set of ints, P tuple of an int and a tensor, G iterator over ints, FN function
of a tensor and an int that gives a tensor, O0, O1, ... an object of a class of the program.

Tensors are of shapes that can be broadcast to each other, so that most programs get far.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PLACE = re.compile(r"<(@?[A-Za-z]+\d*[!?]?)>")


@dataclass(frozen=True)
class Template:
    """One thing that may be written.

    Attributes:
        text: with places to be filled in.
        weight: how often beside others.
        breaks: whether it cuts a graph.
        needs: kinds of which there must be a variable, and whether it is to be assignable.
        leaf: whether nothing in it has parts of its own.
    """

    text: str
    weight: float = 1
    breaks: bool = False

    @property
    def needs(self) -> list[tuple[str, bool]]:
        """Kinds of which there must be a variable, and whether it must be assignable."""
        return [(name[:-1], name[-1] == "!") for name in PLACE.findall(self.text) if name[-1] in "!?"]

    @property
    def parts(self) -> int:
        """How many expressions are to be filled in."""
        return sum(name[0].isupper() and name[-1] not in "!?" for name in PLACE.findall(self.text))


def read(table: str) -> list[Template]:
    """The templates of a table."""
    return [_template(line.strip()) for line in table.strip().splitlines() if line.strip()]


def _template(line: str) -> Template:
    found = re.match(r"([\d.]+ )?(! )?(.*)", line)
    assert found is not None
    return Template(found[3], float(found[1] or 1), bool(found[2]))


LITERALS: dict[str, list[str]] = {
    "i": ["-2", "-1", "0", "1", "2", "3", "4"],
    "u": ["0", "1", "2"],
    "n": ["1", "2", "3"],
    "x": ["-1.5", "-0.0", "0.0", "0.5", "1.0", "2.0", "2.5"],
    "z": ["0", "0", "0", "-1", "-1", "1"],
    "h": ["'a'", "'a'", "'a'", "'a'", "'a'", "'a'", "'b'"],
    "w": ["''", "'a'", "'b'", "'ab'", "'bca'", "'x y'"],
    "k": ["'a'", "'b'", "'c'"],
    "e": [
        "ValueError",
        "KeyError",
        "IndexError",
        "TypeError",
        "RuntimeError",
        "E0",
        "E1",
        "ZeroDivisionError",
    ],
    "d": ["torch.float64", "torch.float32", "torch.int64"],
}

EXPRESSIONS: dict[str, list[Template]] = {
    "T": read(
        """
        6 (<T> + <T>)
        4 (<T> - <T>)
        5 (<T> * <T>)
        2 (<T> / 2)
        4 (<T> * <I>)
        4 (<T> + <F>)
        2 (<I> - <T>)
        2 (<F> * <T>)
        (<T> ** 2)
        (-<T>)
        2 <T>.relu()
        torch.sin(<T>)
        <T>.abs()
        torch.where(<T> > <F>, <T>, <T>)
        <T>.clamp(-8, 8)
        0.7 <T>.sum()
        3 <T>.sum(-1, keepdim=True)
        <T>.mean(-1, keepdim=True)
        0.4 <T>.max()
        2 <T>.clone()
        <T>.detach()
        0.6 <T>[..., :1]
        0.6 <T>[..., 0]
        0.3 <T>[..., -1:]
        0.3 <T>[..., ::2]
        2 <T>.unsqueeze(0)
        <T>[()]
        <T>[None]
        <T>.reshape(<T>.shape)
        <T>.view(-1)[:1]
        <T>.squeeze()
        <T>.contiguous()
        0.6 <T>.to(<d>)
        <T>.float()
        0.3 <T>.T
        <T>.data
        0.5 <T>.expand(2, 3)
        0.5 <T>.flip(-1)
        0.3 torch.cat([<T>, <T>], -1)[..., :1]
        0.3 torch.stack([<T?>, <T?>])[0]
        0.2 torch.stack([<T?> + <i>, <T?>]).sum(0)
        torch.stack([<T?>, <T?> * 2]).sum(0)
        2 torch.zeros_like(<T>)
        torch.ones(<T>.shape)
        torch.full((), <F>)
        torch.tensor(<F>)
        torch.tensor([<F>, <F>, <F>])
        torch.arange(3.0)
        torch.add(<T>, <T>, alpha=<i>)
        torch.maximum(<T>, <T>)
        torch.mul(input=<T>, other=<T>)
        (<T> > <F>)
        0.2 (<T> @ <T>)
        torch.rand(3)
        torch.nn.functional.dropout(<T>, 0.5)
        0.5 torch.softmax(<T>, -1)
        torch.nn.functional.relu(<T>, inplace=False)
        <T>.masked_fill(<T> > 0, <x>)
        0.5 <T>.cumsum(-1)
        <T>.type_as(<T>)
        <T>.new_zeros(3)
        0.5 <T>.add_(<T>)
        <T>.add_(<F>)
        0.5 <T>.topk(1).values
        0.5 torch.split(<T>, 1, -1)[0]
        getattr(<T>, 'real')
        operator.add(<T>, <T>)
        3 <LT>[<z>]
        <LT>[-1]
        2 sum(<LT>)
        sum(<LT>, <T>)
        3 <DT>[<h>]
        2 <DT>.get(<k>, <T>)
        <DT>.setdefault(<k>, <T>)
        <DT>.pop(<k>, <T>)
        <LT>.pop()
        0.3 <LT!>.pop(0)
        2 <P>[1]
        3 (<T> if <B> else <T>)
        functools.reduce(lambda <@a>, <@b>: <@a> + <@b>, <LT>)
        functools.reduce(torch.mul, <LT>, <T>)
        3 <FN>(<T>, <I>)
        next(iter(<LT>), <T>)
        next((<@t> for <@t> in <LT> if <@t>.dim()), <T>)
        max(<LT>, key=lambda <@t>: <@t>.dim(), default=<T>)
        (lambda *<@a>: <@a>[0] - <@a>[-1])(<T>, <T>)
        (lambda <@a>=<T>, *, <@b>=<I>: <@a> * <@b>)()
        [<T>, <T>][<B>]
        {0: <T>, 1: <T>}[<B>]
        (<T>, <T>)[<z>]
        ! torch.tensor(<T>.tolist())
        ! torch.full((<n>,), <T>.sum().item())[:1]
        """
    ),
    "I": read(
        """
        5 (<I> + <I>)
        3 (<I> - <I>)
        2 (<I> * <i>)
        (<I> * <I> % 1009)
        2 (<I> // <n>)
        2 (<I> % <n>)
        0.2 (<I> // <I>)
        0.2 (<I> % <I>)
        (<I> & <I>)
        (<I> | <I>)
        (<I> ^ <I>)
        (<I> << <u>)
        (<I> >> <u>)
        (<I> % 97) ** <u>
        (-<I>)
        (~<I>)
        2 abs(<I>)
        2 len(<LT>)
        2 len(<LI>)
        len(<S>)
        len(<DT>)
        len(<SI>)
        2 <LI>[<z>]
        <LI>[-1]
        2 sum(<LI>)
        max(<LI>, default=<i>)
        min(<LI>, key=lambda <@v>: -<@v>, default=<i>)
        min(<I>, <I>)
        max(<I>, <I>, <I>)
        2 <DI>[<h>]
        2 <DI>.get(<k>, <i>)
        <DI>.setdefault(<k>, <I>)
        <DI>.pop(<k>, <i>)
        3 (<I> if <B> else <I>)
        (<I> and <I>)
        (<I> or <I>)
        int(<x>)
        0.4 int(<F>)
        int(<B>)
        int('12')
        0.2 int(<w>)
        2 <T>.dim()
        2 <T>.shape[-1]
        <T>.numel()
        <T>.size(-1)
        0.4 <T>.stride()[0]
        <T>.storage_offset()
        2 <P>[0]
        <S>.count(<w>)
        <S>.find(<w>)
        0.2 <LI>.index(<i>)
        <LI>.count(<i>)
        divmod(<I>, <n>)[<z>]
        round(<x>)
        0.3 round(<F>)
        0.3 ord(<S>[0])
        pow(<I>, <u>, 7)
        0.5 <SI>.pop()
        2 next(<G>, <i>)
        0.3 next(<G>)
        hash(len(<LI>))
        operator.sub(<I>, <I>)
        functools.reduce(operator.mul, <LI>[:3], 1) % 1009
        <I>.bit_length()
        math.gcd(<I>, <I>)
        0.4 math.floor(<F>)
        0.7 <LI>.pop()
        0.3 <LI!>.pop(0)
        sum(<@v> * <I> for <@v> in <LI>)
        sum(1 for <@t> in <LT> if <@t>.dim() < 2)
        sum(map(len, [<LI>, <S>]))
        collections.Counter(<LI>)[<i>]
        (lambda <@a>, <@b>=<I>: <@a> - <@b>)(<I>)
        (lambda *<@a>, **<@k>: len(<@a>) + <@k>.get('a', <i>))(*<LI>, **<DI>)
        [<@v> := <I>, <@v> + 1][1]
        int(str(<I>)[-1])
        sys.getrefcount.__name__.count('e')
        bool(<I>) + <I>
        ! int(<T>.sum().clamp(-9, 9))
        ! <T>.argmax().item()
        """
    ),
    "F": read(
        """
        3 <x>
        3 (<F> + <F>)
        2 (<F> * <F>)
        2 (<F> - <F>)
        0.3 (<F> / <F>)
        0.2 (<I> / <I>)
        (<I> / <n>)
        2 float(<I>)
        0.1 float(<w>)
        float('1.5')
        math.sqrt(abs(<F>))
        math.copysign(<F>, <F>)
        round(<F>, 1)
        abs(<F>)
        (-<F>)
        0.2 (<F> // <F>)
        0.2 (<F> % <F>)
        (<F> % <n>)
        max(<F>, <F>)
        min(<F>, <I>, <F>)
        math.pi
        0.5 float('nan')
        0.5 float('inf')
        sum([<F>, <F>])
        (<F> if <B> else <F>)
        (<I> * <F>)
        ! <T>.sum().item()
        ! float(<T>.mean())
        """
    ),
    "B": read(
        """
        4 (<I> < <I>)
        3 (<I> == <I>)
        2 (<I> != <I>)
        2 (<I> >= <I>)
        2 (<I> < <I> <= <I>)
        2 (<I> in <LI>)
        2 (<k> in <DT>)
        (<w> in <S>)
        (<I> not in <SI>)
        2 (not <B>)
        2 (<B> and <B>)
        2 (<B> or <B>)
        (<F> < <F>)
        (<F> == <F>)
        (<S> == <S>)
        (<S> < <S>)
        (<LI> == <LI>)
        (<LI> < <LI>)
        (<T> is <T>)
        (<LT?> is <LT>)
        (<T?> is not <T?>)
        bool(<LT>)
        bool(<S>)
        any(<@v> > <I> for <@v> in <LI>)
        all(<@v> % 2 for <@v> in <LI>)
        <S>.startswith(<w>)
        <S>.isalpha()
        (<P?> is <P>)
        <T>.requires_grad
        <T>.is_contiguous()
        (<T>.dim() > 1)
        (<T>.dtype is torch.float32)
        (<T>.shape == <T>.shape)
        isinstance(<T>, torch.Tensor)
        isinstance(<I>, (int, str))
        callable(<FN>)
        (<SI> <= <SI>)
        <SI>.isdisjoint(<SI>)
        (<DI> == <DI>)
        (type(<I>) is int)
        (<I> == <F>)
        hasattr(<T>, <w>)
        ! bool(<T>.sum() > <F>)
        ! (<T>.mean().item() < <F>)
        ! torch.equal(<T>, <T>)
        """
    ),
    "S": read(
        """
        4 <w>
        3 (<S> + <S>)[:9]
        3 str(<I>)
        2 repr(<LI>)
        2 f'{<I?>}'
        2 f'{<S?>}-{<I?>:03d}'
        f'{<I?>=}'
        f'{<F?>:.2f}'
        f'{<F?>!r:>9}'
        f'{<S?>:{len(<LI?>)}}'
        f'{len(<LI?>)}{<LI?>!s}'
        <S>.upper()
        <S>.title()
        (<S> * <u>)[:9]
        <S>[::-1]
        <S>[:<u>]
        <S>[<i>:]
        '-'.join([<S>, <S>])[:9]
        ','.join(str(<@v>) for <@v> in <LI>)
        ''.join(map(str, <LI>))
        ('%d/%s' % (<I>, <S>))
        ('%(a)s' % <DI>)
        '{} {!r}'.format(<I>, <S>)
        '{0:>5}{a}'.format(<S>, a=<I>)
        <S>.replace('a', <w>)
        <S>.split('a')[0]
        <S>.partition('b')[2]
        <S>.strip('a')
        <S>.center(6, '*')
        <S>.zfill(4)
        type(<T>).__name__
        str(<T>.dtype)
        str(tuple(<T>.shape))
        chr(97 + <I> % 26)
        repr(<F>)
        str(<SI>)
        repr(<DI>)
        min(<S>, <S>)
        format(<I>, 'x')
        (<S> if <B> else <S>)
        (<S> or <S>)
        next(iter(<DI>), <w>)
        ! str(<T>)
        """
    ),
    "LT": read(
        """
        4 [<T>, <T>]
        2 [<T>]
        0.3 []
        (<LT> + <LT>)[:4]
        <LT>[:2]
        <LT>[::-1]
        [<@t> * <I> for <@t> in <LT>]
        [<@t> + <@v> for <@t> in <LT> for <@v> in <LI>][:3]
        [<@t> for <@t> in <LT> if <@t>.dim() > 0]
        list(<DT>.values())
        list(reversed(<LT>))
        sorted(<LT>, key=lambda <@t>: -<@t>.dim())
        list(map(torch.relu, <LT>))
        list(map(<FN>, <LT>, <LI>))
        [*<LT>, <T>][-3:]
        <LT>.copy()
        [<T>] * 2
        [<T> for _ in range(<u>)]
        list(itertools.chain(<LT>, [<T>]))[:4]
        [<@t> - <@u> for <@t>, <@u> in zip(<LT>, <LT>)]
        list(torch.ones(2, 3).unbind(0))
        list(<T>[None])
        copy.copy(<LT>)
        copy.deepcopy(<LT>)
        (lambda *<@a>: list(<@a>))(*<LT>)
        """
    ),
    "LI": read(
        """
        4 [<I>, <I>, <I>]
        2 [<I>]
        0.3 []
        2 list(range(<n>))
        list(range(<n>, -2, -1))
        sorted(<LI>)
        sorted(<LI>, reverse=True)
        sorted(<LI>, key=lambda <@v>: (<@v> % 2, <@v>))
        (<LI> + <LI>)[:6]
        <LI>[1:]
        <LI>[::-2]
        2 [<@v> + <I> for <@v> in <LI>]
        [<@v> for <@v> in <LI> if <@v> % 2]
        [<@v> if <@v> > 1 else <I> for <@v> in <LI>]
        sorted(<SI>)
        list(<DI>.values())
        list(map(abs, <LI>))
        list(filter(None, <LI>))
        list(filter(lambda <@v>: <@v> > <I>, <LI>))
        [<@v> * <@w> % 31 for <@v>, <@w> in zip(<LI>, <LI>)]
        [<@v> - <@w> for <@v>, <@w> in enumerate(<LI>, <i>)]
        [*<LI>, *<LI>][:5]
        list(itertools.accumulate(<LI>[:4]))
        list(itertools.islice(itertools.count(<i>), <u>))
        list(itertools.takewhile(lambda <@v>: <@v> < 3, <LI>))
        [len(<@l>) for <@l> in itertools.combinations(<LI>[:3], 2)]
        list(<T>.shape)
        list(dict.fromkeys(<LI>))
        [(<@w> := <@v>) for <@v> in <LI>]
        list(<G>)
        [<I> for <@v> in range(<u>) for <@w> in range(<@v>)]
        [[<@w> for <@w> in range(<@v>)].__len__() for <@v> in <LI>[:3] if <@v> < 6]
        list(collections.deque(<LI>, <n>))
        0.2 list(bytes(<LI>))
        list(bytes(abs(<@v>) for <@v> in <LI>))
        0.2 [*map(int, <S>)]
        copy.copy(<LI>)
        (<LI> or <LI>)
        list((lambda <@a>, *<@b>: (<@a>, *<@b>))(<I>, *<LI>))
        list({**<DI>}.values())
        """
    ),
    "DT": read(
        """
        {<k>: <T>, <k>: <T>}
        4 {'a': <T>, 'b': <T>}
        0.2 {}
        dict(a=<T>, b=<T>)
        {**<DT>, <k>: <T>}
        (<DT> | <DT>)
        {<@k>: <@t> + <I> for <@k>, <@t> in <DT>.items()}
        dict(zip('ab', <LT>))
        <DT>.copy()
        {<@k>: <DT>[<@k>] for <@k> in sorted(<DT>)}
        dict(reversed(list(<DT>.items())))
        copy.deepcopy(<DT>)
        (lambda **<@k>: <@k>)(**<DT>)
        collections.OrderedDict(<DT>)
        collections.defaultdict(lambda: <T>, <DT>)
        """
    ),
    "DI": read(
        """
        {<k>: <I>, <k>: <I>}
        4 {'a': <I>, 'b': <I>}
        0.2 {}
        {**<DI>, <k>: <I>}
        (<DI> | <DI>)
        {<@k>: <@v> + <I> for <@k>, <@v> in <DI>.items()}
        {<@k>: <@v> for <@v>, <@k> in enumerate('abc')}
        dict.fromkeys('abc', <I>)
        dict(<DI>, c=<I>)
        {<@k>: len(<@k>) for <@k> in <DT>}
        collections.defaultdict(int, <DI>)
        collections.Counter(<S>)
        collections.ChainMap(<DI>, <DI>)
        collections.OrderedDict(sorted(<DI>.items()))
        (lambda **<@k>: <@k>)(**<DI>)
        """
    ),
    "SI": read(
        """
        3 {<I>, <I>}
        2 set(<LI>)
        (<SI> | <SI>)
        (<SI> & <SI>)
        (<SI> - <SI>)
        (<SI> ^ <SI>)
        {<@v> % 3 for <@v> in <LI>}
        <SI>.copy()
        <SI>.union(<LI>)
        set()
        """
    ),
    "P": read(
        """
        4 (<I>, <T>)
        tuple([<I>, <T>])
        2 Pair(<I>, <T>)
        Pair(second=<T>, first=<I>)
        (<P> + ())
        <P>[:]
        (*[<I>], <T>)
        Pair(1, <T>)._replace(first=<I>)
        """
    ),
    "G": read(
        """
        2 iter(<LI>)
        (<@v> * 2 for <@v> in <LI>)
        (<@v> for <@v> in <LI> if <@v> > <I>)
        map(abs, <LI>)
        map(lambda <@v>: <@v> + <I>, <LI>)
        filter(None, <LI>)
        reversed(<LI>)
        itertools.chain(<LI>, <LI>)
        itertools.islice(itertools.count(<i>), <n>)
        itertools.islice(itertools.cycle([<I>, <I>]), <n>)
        iter(range(<u>))
        iter(<SI>)
        iter(<DI>.values())
        itertools.repeat(<I>, <u>)
        (<@v> for <@w> in [<LI>, <LI>] for <@v> in <@w>)
        """
    ),
    "FN": read(
        """
        3 (lambda <@a>, <@b>: <@a> * <@b> + <T>)
        (lambda <@a>, <@b>=<I>: <@a> - <@b> * <I>)
        operator.mul
        torch.sub
        functools.partial(lambda <@c>, <@a>, <@b>: <@a> * <@c> + <@b>, <I>)
        (lambda <@t>: lambda <@a>, <@b>: <@t> + <@a> * <@b>)(<T>)
        (lambda <@a>, <@b>: <FN>(<@a>, <@b>))
        (<FN> if <B> else <FN>)
        """
    ),
}

#: What a kind is written as where nothing else will do.
LEAVES: dict[str, list[str]] = {
    "T": ["torch.ones(3)", "torch.arange(3.0)", "torch.tensor(2.0)", "torch.zeros(2, 3)"],
    "I": LITERALS["i"],
    "F": LITERALS["x"],
    "B": ["True", "False"],
    "S": LITERALS["w"],
    "LT": ["[torch.ones(3)]", "[torch.ones(2, 3), torch.arange(3.0)]"],
    "LI": ["[1, 2]", "[3, 0, 2]"],
    "DT": ["{'a': torch.ones(3)}", "{'a': torch.ones(3), 'b': torch.arange(3.0)}"],
    "DI": ["{'a': 1}", "{'a': 2, 'b': 3}"],
    "SI": ["{1, 2}", "{3}"],
    "P": ["(1, torch.ones(3))", "Pair(2, torch.arange(3.0))"],
    "G": ["iter([1, 2, 3])"],
    "FN": ["operator.mul", "torch.add", "(lambda a, b: a + b)"],
}

STATEMENTS = read(
    """
    <T!> += <T>
    4 <T!> += <I>
    3 <T!> *= <F>
    <T!> -= <T>
    0.6 <T!>.add_(<T>)
    2 <T!>.add_(<I>)
    2 <T!>.mul_(<F>)
    2 <T!>[...] = <F>
    0.6 <T!>[..., 0] = <F>
    0.3 <T!>[..., :1] += <T>
    0.5 <T!>[..., -1] *= 2
    <T!>.zero_()
    0.5 <T!>.copy_(<T>)
    <T!>[<T!> > 1] = <x>
    0.1 <T!>.requires_grad_()
    <T?>.mark = <I>
    <T!> = <T?>[None].add_(<I>)
    <T!> = <T!> = <T>
    <T!>, <T!> = <T!>, <T!>
    0.3 <T!>.data = <T>
    2 <I!> += <I>
    <I!> -= <n>
    <I!> *= <n>
    <I!> //= <n>
    2 <I!> %= 5
    <I!> |= <I>
    <F!> += <F>
    <F!> /= 2
    <S!> += <S>[:3]
    3 <LT!>.append(<T>)
    <LT!>.extend(<LT>[:2])
    <LT!>.insert(<u>, <T>)
    <LT!>.reverse()
    <LT!>[0] = <T>
    <LT!>[0] += <I>
    <LT!>[-1].add_(<I>)
    <LT!> += [<T>]
    0.5 del <LT!>[0]
    <LT!>[1:] = <LT>[:2]
    0.2 <LT!>.clear()
    <LT!> *= len(<LT>) < 4
    3 <LI!>.append(<I>)
    <LI!>.extend(itertools.islice(<G>, 3))
    <LI!> += <LI>[:2]
    <LI!>.insert(<i>, <I>)
    <LI!>[0] = <I>
    <LI!>[-1] += <I>
    <LI!>.sort()
    <LI!>.sort(key=lambda <@v>: -<@v>)
    0.2 <LI!>.remove(<I>)
    del <LI!>[<u>:]
    0.2 <LI!>[::2] = <LI>
    <LI!>[::2] = [<@v> + 1 for <@v> in <LI!>[::2]]
    <LI!>[<u>:<n>] = <LI>[:3]
    <LI!>, <LI!>[:] = <LI>, <LI>[:3]
    <I!>, *<LI!> = (1, *<LI>)
    *<LI!>, <I!> = <LI>
    <I!>, <T!> = <P>
    (<I!>, <I!>), <I!> = (<I>, <I>), <I>
    <I!>, <LI!> = <I>, <LI>
    <LI!>[<z>] = <I!> = <I>
    3 <DT!>[<k>] = <T>
    <DT!>[<h>] += <I>
    <DT!>.update(<DT>)
    <DT!>.update(a=<T>)
    0.3 del <DT!>[<k>]
    <DT!> |= <DT>
    0.4 <DT!>.popitem()
    0.2 <DT!>.clear()
    2 <DI!>[<k>] = <I>
    2 <DI!>[<h>] += <I>
    <DI!>.setdefault(<k>, <I>)
    0.3 del <DI!>[<k>]
    <DI!>[<S>] = <I>
    2 <SI!>.add(<I>)
    <SI!>.discard(<I>)
    0.2 <SI!>.remove(<I>)
    <SI!> |= <SI>
    <SI!>.update(<G>)
    <SI!> -= <SI>
    <P!> += ()
    <P!> = (*<P>[:1], <T>)
    0.3 torch.add(<T>, <T>, out=<T!>)
    <T>
    [<LI!>.append(<@v>) for <@v> in <LI>[:3]]
    0.3 assert <B>, <S>
    assert isinstance(<I>, int)
    4 ! print(<S>)
    2 ! print(<I>, <LI>, sep='|', end=';')
    ! print(<T>.shape, <T>)
    4 ! graphlift.graph_break()
    warnings.warn(<S>, FutureWarning)
    import math as <@m>; <I!> += <@m>.floor(<x>)
    """
)
