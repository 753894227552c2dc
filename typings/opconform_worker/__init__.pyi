"""The name under which a worker process has the folder ``harness/workers/worker``."""

from harness.workers.worker import (
    DECLARED as DECLARED,
)
from harness.workers.worker import (
    HEAD as HEAD,
)
from harness.workers.worker import (
    MARK as MARK,
)
from harness.workers.worker import (
    PAGE as PAGE,
)
from harness.workers.worker import (
    PHASES as PHASES,
)
from harness.workers.worker import (
    Backend as Backend,
)
from harness.workers.worker import (
    ProtocolError as ProtocolError,
)
from harness.workers.worker import (
    Reader as Reader,
)
from harness.workers.worker import (
    Server as Server,
)
from harness.workers.worker import (
    TypeOnly as TypeOnly,
)
from harness.workers.worker import (
    Unsupported as Unsupported,
)
from harness.workers.worker import (
    Writer as Writer,
)
from harness.workers.worker import (
    die_with as die_with,
)
from harness.workers.worker import (
    dtype_name as dtype_name,
)
from harness.workers.worker import (
    ending as ending,
)
from harness.workers.worker import (
    from_raw as from_raw,
)
from harness.workers.worker import (
    make_backend as make_backend,
)
from harness.workers.worker import (
    map_body as map_body,
)
from harness.workers.worker import (
    memory_file as memory_file,
)
from harness.workers.worker import (
    named as named,
)
from harness.workers.worker import (
    onnx_bytes as onnx_bytes,
)
from harness.workers.worker import (
    pack as pack,
)
from harness.workers.worker import (
    pack_frame as pack_frame,
)
from harness.workers.worker import (
    processor as processor,
)
from harness.workers.worker import (
    raw as raw,
)
from harness.workers.worker import (
    recv_frame as recv_frame,
)
from harness.workers.worker import (
    send_frame as send_frame,
)
from harness.workers.worker import (
    sibling as sibling,
)
from harness.workers.worker import (
    storage as storage,
)
from harness.workers.worker import (
    sweep as sweep,
)
from harness.workers.worker import (
    text_of as text_of,
)
from harness.workers.worker import (
    unhead as unhead,
)
from harness.workers.worker import (
    unpack as unpack,
)
from harness.workers.worker import (
    zygote as zygote,
)
