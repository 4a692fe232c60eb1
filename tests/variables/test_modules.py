"""`nn.Module`s in captured code: every layer with plain inputs, containers, hooks, writes."""

import pytest
import torch
from torch import nn

import graphlift
from graphlift.testing import check, check_fresh

V = torch.randn(2, 4)
SEQ = torch.randn(2, 5, 4)
IMG1 = torch.randn(2, 4, 8)
IMG = torch.randn(2, 4, 8, 8)
IMG3 = torch.randn(2, 4, 4, 4, 4)
IDS = torch.randint(0, 10, (2, 5))
CLASSES = torch.tensor([1, 3])
SIGNS = torch.tensor([1.0, -1.0])

LAYERS = [
    (lambda: nn.Linear(4, 3), V),
    (lambda: nn.Bilinear(4, 4, 3), V, V),
    *[
        (make, V)
        for make in (
            nn.ReLU, nn.ReLU6, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.Sigmoid, nn.Tanh, nn.SiLU, nn.Mish,
            nn.Softplus, nn.Softsign, nn.Tanhshrink, nn.Hardtanh, nn.Hardsigmoid, nn.Hardswish, nn.Hardshrink,
            nn.Softshrink, nn.LeakyReLU, nn.LogSigmoid, nn.PReLU,
        )
    ],
    (lambda: nn.Threshold(0.1, 0.0), V),
    (lambda: nn.GLU(), V),
    (lambda: nn.Softmax(-1), V),
    (lambda: nn.Softmin(-1), V),
    (lambda: nn.LogSoftmax(-1), V),
    (lambda: nn.Softmax2d(), IMG),
    (lambda: nn.Flatten(), IMG),
    (lambda: nn.Unflatten(1, (2, 2)), V),
    (lambda: nn.Conv1d(4, 3, 3, padding=1), IMG1),
    (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), IMG),
    (lambda: nn.Conv2d(4, 6, 3, padding="same", padding_mode="reflect"), IMG),
    (lambda: nn.Conv3d(4, 2, 3), IMG3),
    (lambda: nn.ConvTranspose1d(4, 3, 3), IMG1),
    (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2), IMG),
    (lambda: nn.ConvTranspose3d(4, 3, 3), IMG3),
    (lambda: nn.MaxPool1d(2), IMG1),
    (lambda: nn.MaxPool2d(2, return_indices=True), IMG),
    (lambda: nn.MaxPool3d(2), IMG3),
    (lambda: nn.AvgPool1d(2), IMG1),
    (lambda: nn.AvgPool2d(2), IMG),
    (lambda: nn.AvgPool3d(2), IMG3),
    (lambda: nn.AdaptiveAvgPool1d(3), IMG1),
    (lambda: nn.AdaptiveAvgPool2d((1, None)), IMG),
    (lambda: nn.AdaptiveMaxPool2d(2), IMG),
    (lambda: nn.LPPool2d(2, 2), IMG),
    (lambda: nn.ZeroPad2d(1), IMG),
    (lambda: nn.ReflectionPad2d(1), IMG),
    (lambda: nn.ReplicationPad1d(1), IMG1),
    (lambda: nn.CircularPad2d(1), IMG),
    (lambda: nn.ConstantPad1d(1, 2.0), IMG1),
    (lambda: nn.BatchNorm1d(4), V),
    (lambda: nn.BatchNorm2d(4, track_running_stats=False), IMG),
    (lambda: nn.BatchNorm2d(4).eval(), IMG),
    (lambda: nn.BatchNorm3d(4), IMG3),
    (lambda: nn.InstanceNorm2d(4, affine=True), IMG),
    (lambda: nn.LayerNorm(4), V),
    (lambda: nn.RMSNorm(4), V),
    (lambda: nn.GroupNorm(2, 4), IMG),
    (lambda: nn.LocalResponseNorm(2), IMG),
    (lambda: nn.Dropout(0.5), V),
    (lambda: nn.Dropout2d(), IMG),
    (lambda: nn.AlphaDropout(), V),
    (lambda: nn.Embedding(10, 4, padding_idx=0), IDS),
    (lambda: nn.EmbeddingBag(10, 4, mode="mean"), IDS),
    (lambda: nn.PixelShuffle(2), IMG),
    (lambda: nn.PixelUnshuffle(2), IMG),
    (lambda: nn.ChannelShuffle(2), IMG),
    (lambda: nn.Upsample(scale_factor=2), IMG),
    (lambda: nn.Upsample(size=(3, 3), mode="bilinear"), IMG),
    (lambda: nn.Unfold(3), IMG),
    (lambda: nn.Fold((4, 4), 2), torch.randn(1, 12, 9)),
    (lambda: nn.CosineSimilarity(), V, V),
    (lambda: nn.PairwiseDistance(), V, V),
    (lambda: nn.MSELoss(), V, V),
    (lambda: nn.L1Loss(reduction="sum"), V, V),
    (lambda: nn.SmoothL1Loss(), V, V),
    (lambda: nn.HuberLoss(), V, V),
    (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), V, CLASSES),
    (lambda: nn.NLLLoss(), V, CLASSES),
    (lambda: nn.BCEWithLogitsLoss(), V, V.sigmoid()),
    (lambda: nn.BCELoss(), V.sigmoid(), V.sigmoid()),
    (lambda: nn.KLDivLoss(reduction="batchmean"), V.log_softmax(-1), V.softmax(-1)),
    (lambda: nn.PoissonNLLLoss(), V, V.abs()),
    (lambda: nn.SoftMarginLoss(), V, V.sign()),
    (lambda: nn.HingeEmbeddingLoss(), V, V.sign()),
    (lambda: nn.MultiMarginLoss(), V, CLASSES),
    (lambda: nn.MarginRankingLoss(), V[:, 0], V[:, 1], SIGNS),
    (lambda: nn.CosineEmbeddingLoss(), V, V + 1, SIGNS),
    (lambda: nn.TripletMarginLoss(), V, V + 1, V - 1),
    (lambda: nn.MultiheadAttention(4, 2, batch_first=True), SEQ, SEQ, SEQ),
    (lambda: nn.MultiheadAttention(4, 2, batch_first=True).eval(), SEQ, SEQ, SEQ),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), SEQ),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), SEQ),
    (lambda: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), SEQ, SEQ),
    (lambda: nn.RNN(4, 3, batch_first=True), SEQ),
    (lambda: nn.LSTM(4, 3, num_layers=2, batch_first=True), SEQ),
    (lambda: nn.GRU(4, 3, bidirectional=True), SEQ),
    (lambda: nn.RNNCell(4, 3), V),
    (lambda: nn.LSTMCell(4, 3), V),
    (lambda: nn.GRUCell(4, 3), V),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), V),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_captured_before():
    graphlift.reset()


@pytest.mark.parametrize("row", LAYERS, ids=lambda row: type(row[0]()).__name__)
def test_layer(row):
    make, *inputs = row
    torch.manual_seed(0)
    check(make(), *inputs)


@pytest.mark.parametrize("layer", [nn.Identity(), nn.Dropout(0.5).eval(), nn.Flatten()], ids=str)
def test_layers_that_do_nothing(layer):
    check(layer, V, graphs=0)


def test_an_average_over_all_batches_needs_their_number():
    check(nn.BatchNorm2d(4, momentum=None), IMG, graphs=None, breaks=None, recompiles=None)


class Block(nn.Module):
    def __init__(self, size=4, scale=2.0):
        super().__init__()
        self.first = nn.Linear(size, size)
        self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(size)) for _ in range(2)])
        self.register_buffer("shift", torch.ones(size))
        self.register_parameter("nothing", None)
        self.scale = scale

    def forward(self, x, kind="a"):
        x = self.first(x) * self.scale + self.shift
        for index, layer in enumerate(self.layers):
            x = layer(x) + index
        x = self.layers[-1](x) + self.layers[0].weight.sum()
        for module in self.layers[1:]:
            x = module(x)
        x = self.named[kind](x)
        for weight in self.weights:
            x = x * weight
        if self.nothing is not None:
            x = x + self.nothing
        return x if not self.training else x + len(self.layers)


def test_attributes_and_containers():
    check(Block(), V, then=[(V, "b")], recompiles=1)


def test_called_from_a_function():
    block = Block()

    def f(x):
        return block(x) + block.first(x)

    check(f, V)


def test_training_flag_is_guarded():
    block = Block()
    checked = check(block, V)
    block.eval()
    compiled = graphlift.compile(block, backend="eager")
    assert torch.equal(compiled(V), block(V))
    block.train()
    assert torch.equal(compiled(V), block(V))
    assert checked.captured.captures == 1


def test_parameters_and_children_by_name():
    block = Block()

    def f(x):
        for name, parameter in block.named_parameters():
            if name.endswith("bias"):
                x = x + parameter
        for child in block.children():
            x = x + len(list(child.parameters()))
        return x, [name for name, _ in block.named_modules()], sum(1 for _ in block.buffers())

    check(f, V)


def test_attributes_written():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(4))
            self.seen = []

        def forward(self, x):
            self.calls += 1
            self.total = self.total + x.sum(0)
            self.last = x
            self.seen.append(x.shape[0])
            return x * self.calls

    def make():
        module = Counter()
        return (lambda x, module: module(x)), (V.clone(), module)

    check_fresh(make)


def test_buffer_written_in_place():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.mean

    module = Average()
    check(lambda x, m: (m(x), m), V, module)


def test_forward_hooks_run():
    layer = nn.Linear(4, 4)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    layer.register_forward_hook(lambda module, args, result: result * 2)
    check(lambda x: layer(x), V)


def test_hooks_added_later_are_seen():
    layer = nn.Linear(4, 4)
    compiled = graphlift.compile(layer, backend="eager")
    plain = compiled(V)
    handle = layer.register_forward_hook(lambda module, args, result: result + 1)
    assert torch.equal(compiled(V), plain + 1)
    handle.remove()
    assert torch.equal(compiled(V), plain)


def test_forward_replaced_on_the_instance():
    layer = nn.Linear(4, 4)

    def f(x):
        return layer(x)

    compiled = graphlift.compile(f, backend="eager")
    assert torch.equal(compiled(V), layer(V))
    layer.forward = lambda x: x * 3
    assert torch.equal(compiled(V), V * 3)


def test_tied_weights_are_one_input():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4, bias=False)
            self.b = nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    checked = check(Tied(), V)
    assert checked.captured.graphs[0].splitlines()[0].count("weight") == 1


def test_missing_attribute():
    class Missing(nn.Module):
        def forward(self, x):
            return x + self.nowhere

    check(Missing(), V, graphs=None, breaks=None)


def test_property_and_method_of_a_module():
    class Sized(nn.Linear):
        @property
        def area(self):
            return self.in_features * self.out_features

        def double(self, x):
            return self(x) * 2

        def forward(self, x):
            return super().forward(x) + self.area

    module = Sized(4, 4)
    check(lambda x: module.double(x), V)
