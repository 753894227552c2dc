"""Small networks in PyTorch.  Weights are drawn from a fixed seed and keep activations of order one through all layers.

A layer is a module without modules inside; what a network would write as an expression is a module here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional as F

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True)
class Network:
    """One network, and how it is converted.

    make: makes the module, untrained.
    inputs: makes example inputs, from a generator.
    targets: deployment targets to convert for.
    frontends: of coremltools, "trace" and "export".
    folded: layers that conversion merges into the one behind.
    states: paths of the buffers that become states.
    bits: palettise the weights to so many bits.
    departs: precision -> (layer that leaves its bound, id of the known difference that it shows).
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[torch.Generator], tuple[Tensor, ...]]
    targets: tuple[str, ...]
    frontends: tuple[str, ...] = ("trace", "export")
    folded: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    bits: int = 0
    departs: dict[str, tuple[str, str]] = field(default_factory=dict)


class Apply(nn.Module):
    """A function as a layer."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *xs: Any) -> Any:
        return self.fn(*xs)


def add() -> Apply:
    return Apply(lambda a, b: a + b)


class Convolutional(nn.Module):
    """Two convolutions with batch norm, a shortcut, both poolings, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.stem_norm = nn.BatchNorm2d(8)
        self.stem_act = nn.ReLU()
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.add = add()
        self.act = nn.LeakyReLU(0.1)
        self.max_pool = nn.MaxPool2d(2)
        self.avg_pool = nn.AvgPool2d(3, stride=1, padding=1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(72, 10)
        self.softmax = nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem_act(self.stem_norm(self.stem(x)))
        x = self.act(self.add(x, self.norm(self.conv(x))))
        return self.softmax(self.head(self.flatten(self.avg_pool(self.max_pool(x)))))


class Depthwise(nn.Module):
    """An inverted residual: expand, depthwise with stride, squeeze and excite, project; then a plain separable one."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(4, 12, 1, bias=False)
        self.expand_norm = nn.BatchNorm2d(12)
        self.expand_act = nn.ReLU6()
        self.depthwise = nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=12, bias=False)
        self.depthwise_norm = nn.BatchNorm2d(12)
        self.depthwise_act = nn.SiLU()
        self.squeeze = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(12, 4, 1)
        self.reduce_act = nn.ReLU()
        self.excite = nn.Conv2d(4, 12, 1)
        self.gate = nn.Sigmoid()
        self.scale = Apply(lambda a, b: a * b)
        self.project = nn.Conv2d(12, 6, 1, bias=False)
        self.project_norm = nn.BatchNorm2d(6)
        self.dilated = nn.Conv2d(6, 6, 3, padding=2, dilation=2, groups=6)
        self.residual = add()
        self.mean = Apply(lambda x: x.mean((2, 3)))
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.expand_act(self.expand_norm(self.expand(x)))
        x = self.depthwise_act(self.depthwise_norm(self.depthwise(x)))
        x = self.scale(x, self.gate(self.excite(self.reduce_act(self.reduce(self.squeeze(x))))))
        x = self.project_norm(self.project(x))
        return self.head(self.mean(self.residual(x, self.dilated(x))))


class Recurrent(nn.Module):
    """Words to tags: an embedding, an LSTM in both directions, one more in one direction, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.both = nn.LSTM(6, 4, bidirectional=True)
        self.once = nn.LSTM(8, 5)
        self.dense = nn.Linear(5, 3)
        self.tanh = nn.Tanh()

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        x, _ = self.both(self.embedding(words))
        x, (h, _) = self.once(x)
        return self.tanh(self.dense(x)), h


class Cache(nn.Module):
    """The keys or values of the last eight positions; the newest come last."""

    def __init__(self, heads: int, length: int, size: int) -> None:
        super().__init__()
        self.register_buffer("held", torch.zeros(1, heads, length, size))
        self.roll = Apply(lambda held, new: torch.cat([held[:, :, new.shape[2] :], new], 2))

    def forward(self, new: Tensor) -> Tensor:
        self.held[:] = self.roll(self.held, new)
        return self.held


class Transformer(nn.Module):
    """A decoder's block that goes on from call to call: keys and values are states."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.norm1 = nn.LayerNorm(16)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.heads_q, self.heads_k, self.heads_v = (
            Apply(lambda x: x.reshape(1, -1, 2, 8).transpose(1, 2)) for _ in range(3)
        )
        self.keys, self.values = Cache(2, 8, 8), Cache(2, 8, 8)
        if fused:
            self.attention = Apply(F.scaled_dot_product_attention)
        else:
            self.scores = Apply(lambda q, k: q @ k.transpose(-1, -2) * 8**-0.5)
            self.weights = nn.Softmax(-1)
            self.mix = Apply(lambda w, v: w @ v)
        self.join = Apply(lambda x: x.transpose(1, 2).reshape(1, -1, 16))
        self.out = nn.Linear(16, 16)
        self.add1 = add()
        self.norm2 = nn.LayerNorm(16)
        self.up = nn.Linear(16, 24)
        self.gelu = nn.GELU()
        self.down = nn.Linear(24, 16)
        self.add2 = add()

    def forward(self, x: Tensor) -> Tensor:
        n = self.norm1(x)
        q = self.heads_q(self.query(n))
        k = self.keys(self.heads_k(self.key(n)))
        v = self.values(self.heads_v(self.value(n)))
        a = self.attention(q, k, v) if self.fused else self.mix(self.weights(self.scores(q, k)), v)
        x = self.add1(x, self.out(self.join(a)))
        return self.add2(x, self.down(self.gelu(self.up(self.norm2(x)))))


class Palettised(nn.Module):
    """What carries weights, without norms that would be merged into them: they stand in the package as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, padding=1)
        self.relu = nn.ReLU()
        self.depthwise = nn.Conv2d(12, 12, 3, stride=2, groups=12)
        self.tanh = nn.Tanh()
        self.flatten = nn.Flatten()
        self.dense = nn.Linear(108, 24)
        self.silu = nn.SiLU()
        self.head = nn.Linear(24, 7)
        self.softmax = nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tanh(self.depthwise(self.relu(self.conv(x))))
        return self.softmax(self.head(self.silu(self.dense(self.flatten(x)))))


class Decoder(nn.Module):
    """Down and up again: group and instance norm, transposed convolution, bilinear resizing, concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 6, 4, stride=2, padding=1)
        self.group_norm = nn.GroupNorm(2, 6)
        self.prelu = nn.PReLU(6)
        self.bottom = nn.Conv2d(6, 8, 3, padding=1, padding_mode="reflect")
        self.instance_norm = nn.InstanceNorm2d(8, affine=True)
        self.hard_swish = nn.Hardswish()
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.resize = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join = Apply(lambda a, b, c: torch.cat([a, b, c], 1))
        self.elu = nn.ELU()
        self.merge = nn.Conv2d(12, 3, 1)
        self.log_softmax = nn.LogSoftmax(1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.prelu(self.group_norm(self.down(x)))
        z = self.hard_swish(self.instance_norm(self.bottom(y)))
        z = self.join(x, self.up(z), self.resize(y))
        return self.log_softmax(self.merge(self.elu(z)))


class Signal(nn.Module):
    """One axis: dilated and transposed convolution, resizing, sums of products, norms written out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 12, 3, padding=2, dilation=2)
        self.glu = nn.GLU(1)
        self.pool = nn.AvgPool1d(3, 2, padding=1, ceil_mode=True)
        self.up = nn.ConvTranspose1d(6, 6, 4, stride=2, padding=1, groups=3)
        self.tanh = nn.Tanh()
        self.nearest = nn.Upsample(scale_factor=2, mode="nearest")
        self.sum = Apply(lambda x: x.cumsum(2))
        self.products = Apply(lambda x: torch.einsum("bit,bis->bts", x, x))
        self.log_sum = Apply(lambda x: torch.logsumexp(x, -1))
        self.rms = Apply(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        self.softplus = nn.Softplus()

    def forward(self, x: Tensor) -> Tensor:
        x = self.nearest(self.tanh(self.up(self.pool(self.glu(self.conv(x))))))
        return self.softplus(self.rms(self.log_sum(self.products(self.sum(x)))))


class Picture(nn.Module):
    """Shuffled pixels, local norms, resizing by corners, uneven adaptive pooling, statistics; two results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, (3, 2), stride=(1, 2), padding=(1, 0))
        self.shuffle = nn.PixelShuffle(2)
        self.local = nn.LocalResponseNorm(3)
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.resize = nn.Upsample(size=(7, 5), mode="bilinear", align_corners=True)
        self.mish = nn.Mish()
        self.up = nn.ConvTranspose2d(4, 4, 3, stride=2, dilation=2, groups=2, bias=False)
        self.unit = Apply(lambda x: F.normalize(x, dim=1))
        self.selu = nn.SELU()
        self.top = Apply(lambda x: x.amax((2, 3)))
        self.mean = Apply(lambda x: x.mean((2, 3)))
        self.join = Apply(lambda a, b: torch.cat([a, b], 1))
        self.side = nn.Conv2d(3, 8, 2, bias=False)
        self.adaptive = nn.AdaptiveAvgPool2d((3, 2))
        self.hard_sigmoid = nn.Hardsigmoid()
        self.softsign = nn.Softsign()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.mish(self.resize(self.pool(self.local(self.shuffle(self.conv(x))))))
        y = self.selu(self.unit(self.up(y)))
        return self.join(self.top(y), self.mean(y)), self.softsign(self.hard_sigmoid(self.adaptive(self.side(x))))


def _images(*shape: int) -> Callable[[torch.Generator], tuple[Tensor, ...]]:
    return lambda g: (torch.randn(*shape, generator=g),)


def _words(g: torch.Generator) -> tuple[Tensor, ...]:
    return (torch.randint(0, 11, (7, 1), generator=g, dtype=torch.int32),)


NETWORKS = {
    "convolutional": Network(Convolutional, _images(1, 3, 12, 12), ("iOS15", "iOS17"), folded=("stem", "conv")),
    "depthwise": Network(Depthwise, _images(1, 4, 8, 8), ("iOS15", "iOS16"), folded=("expand", "depthwise", "project")),
    "recurrent": Network(Recurrent, _words, ("iOS15", "iOS17"), ("trace",)),
    "transformer": Network(
        lambda: Transformer(fused=True), _images(1, 3, 16), ("iOS18",), states=("keys.held", "values.held")
    ),
    "attention": Network(
        lambda: Transformer(fused=False),
        _images(1, 3, 16),
        ("iOS18",),
        folded=("heads_q",),
        states=("keys.held", "values.held"),
    ),
    "decoder": Network(
        Decoder,
        _images(1, 2, 8, 8),
        ("iOS15", "iOS16"),
        folded=("group_norm",),
        departs={"FLOAT32": ("prelu", "ct-pass-batchnorm-epsilon")},
    ),
    "signal": Network(Signal, _images(1, 4, 9), ("iOS16", "iOS17"), folded=("products",)),
    "picture": Network(Picture, _images(1, 3, 8, 8), ("iOS15", "iOS16")),
    "palettised": Network(Palettised, _images(1, 3, 8, 8), ("iOS16", "iOS18"), bits=4),
}


def module(name: str) -> nn.Module:
    """The network of that name, ready to run: seeded, running statistics and affine parameters not their defaults."""
    torch.manual_seed(sum(name.encode()))
    made = NETWORKS[name].make().eval()
    for m in made.modules():
        if isinstance(m, (nn.BatchNorm2d, nn.GroupNorm, nn.InstanceNorm2d, nn.LayerNorm)):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0.0, 0.3)
        if isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.running_mean, 0.0, 0.3)
            nn.init.uniform_(m.running_var, 0.3, 1.5)
        if isinstance(m, nn.PReLU):
            nn.init.uniform_(m.weight, 0.1, 0.4)
    return made


def layers(m: nn.Module) -> dict[str, nn.Module]:
    """Path -> module, of all modules without modules inside."""
    return {path: sub for path, sub in m.named_modules() if not list(sub.children())}
