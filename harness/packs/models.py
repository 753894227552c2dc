"""The model files of a frozen instance, as the format's own readers take them."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from harness.backends import exporting
from harness.core.outcome import Model, Status
from harness.packs.frozen import Frozen, LeftOut
from harness.workers.pool import BackendHandle
from harness.workers.spec import Spec
from harness.workers.wire import Job

# dialect -> name of the model, file and class that write it; other dialects build files that can be used as they are
WRITTEN = {"mil": ("model.mlpackage", "mlpackage.py", "Package")}
OUTPUTS = ("package", "given")
PRIVATE = ".milp"  # extension of models that nothing but opconform reads


def model_files(frozen: Frozen) -> tuple[str, dict[str, bytes], dict[str, Any]]:
    """Name of the model, a file or a folder; its files; type and shape of outputs that the model gives in another form
    than the operator's.  Raises LeftOut where the format's package writes none."""
    dialect = frozen.case.version.dialect
    if dialect.name not in WRITTEN:
        name = f"model{dialect.extension}"
        return name, {name: bytes(frozen.model.data)}, {}
    name, file, cls = WRITTEN[dialect.name]
    package, given = _exported(file, cls, frozen.model)
    with zipfile.ZipFile(io.BytesIO(package)) as z:
        return name, {f"{name}/{n}": z.read(n) for n in sorted(z.namelist())}, json.loads(given)


def _exported(file: str, cls: str, model: Model) -> tuple[bytes, bytes]:
    """What the class makes of a model."""
    (result,) = _exporter(file, cls).run([Job(Model(model.format, model.data, [[]], [list(OUTPUTS)]), [[[]]])])
    outcome = result.outcomes[0][0]
    if outcome.status is not Status.VALUE or not outcome.outputs:
        raise LeftOut(f"no {cls}: {outcome.message.splitlines()[0] if outcome.message else outcome.status.value}")
    package, given = outcome.outputs
    return package.tobytes(), given.tobytes()


@cache
def _exporter(file: str, cls: str) -> BackendHandle:
    """Its process, for the rest of ours.  Raises BackendError where the format's package is not installed."""
    import atexit

    handle = BackendHandle(Spec(cls, cls, file=str(Path(str(exporting.__file__)).parent / file)))
    atexit.register(handle.close)
    return handle
