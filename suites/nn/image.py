"""Image inputs, preprocessing, and what leaves the network.

Source: NeuralNetwork.proto, NeuralNetworkImageShapeMapping, NeuralNetworkPreprocessing, NeuralNetworkClassifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError, UsageError
from suites.nn.interpret import Run


def blob(x: Any, name: str, meta: dict[str, Any]) -> np.ndarray:
    """[1, 1, C, H, W] or, under RANK4_IMAGE_MAPPING, [1, C, H, W] of an image [C, H, W], preprocessed."""
    a = np.asarray(x, np.float32)
    channels = 1 if meta["images"][name].startswith("GRAY") else 3
    a = a.reshape((1, *a.shape)) if a.ndim == 2 else a.reshape(a.shape[-3:])
    if a.shape[0] != channels:
        raise RuleError("image-channels", f"image {name} has {a.shape[0]} channels, expected {channels}")
    a = preprocess(a, name, meta)
    lead = 1 if meta["image_mapping"] == "RANK4_IMAGE_MAPPING" else 2
    return a.reshape((1,) * lead + a.shape)


def preprocess(x: np.ndarray, name: str, meta: dict[str, Any]) -> np.ndarray:
    """Scaler (channelScale * x + bias of each channel) or mean image, for the input that a preprocessor names."""
    for p in meta["preprocessing"]:
        if p.get("featureName") not in (name, None, "") or (
            not p.get("featureName") and name not in meta.get("images", {})
        ):
            continue
        if "scaler" in p:
            x = _scale(x, p["scaler"], meta.get("images", {}).get(name, "RGB"))
        elif "meanImage" in p:
            mean = np.asarray(p["meanImage"].get("meanImage", ()), np.float32)
            if mean.size != np.prod(x.shape[-3:]):
                raise RuleError("mean-image-fits", f"{mean.size} values for {list(x.shape[-3:])}")
            x = x - mean.reshape(x.shape[-3:])
    return x


def _scale(x: np.ndarray, s: dict[str, Any], color: str) -> np.ndarray:
    order = {"RGB": ("red", "green", "blue"), "BGR": ("blue", "green", "red")}
    names = ("gray",) if color.startswith("GRAY") or x.shape[-3] == 1 else order[color]
    bias = np.array([s.get(f"{n}Bias", 0.0) for n in names], np.float64)[:, None, None]
    return (x.astype(np.float64) * s.get("channelScale", 0.0) + bias).astype(np.float32)


def output(run: Run, name: str, meta: dict[str, Any]) -> Any:
    """A blob in its declared type; of a classifier, the label or the probability of every label."""
    c = meta.get("classifier")
    if c is not None and name in (c["label"], c["probabilities"]):
        p = run.blobs[c["blob"] or list(run.blobs)[-1]].reshape(-1)
        if name == c["label"]:
            return c["labels"][int(np.argmax(p))]
        return {label: float(v) for label, v in zip(c["labels"], p)}
    if name not in run.blobs:
        raise UsageError(f"nn: output {name!r} is not made by any layer")
    kind = meta["outputs"].get(name, {}).get("multiArrayType", {}).get("dataType", "FLOAT32")
    to = {"INT32": np.int32, "DOUBLE": np.float64, "FLOAT16": np.float16}.get(kind)
    return run.blobs[name] if to is None else run.blobs[name].astype(to)
