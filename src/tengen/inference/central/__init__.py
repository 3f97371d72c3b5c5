"""Central inference: one process evaluates the network for actors in other processes.

On one host, an actor's rows are in shared memory. Between hosts, rows are sent over the
session's stream. Requests and replies always use the stream::

    server = InferenceServer(signature, ...)           # role ``inference``
    server.set_model(backend, version, number)
    server.run(stop)

    places = Places([Place(connect, model)])           # in an actor: its servers
    client = InferenceClient(places, signature, num_envs, stop)
    port = EnvironmentPort(env, ..., arrays=client.arrays)
    drive(port, client)

Source: Espeholt et al. 2020, "SEED RL", section 3.1.
"""

from tengen.inference.central.client import (
    Asker,
    InferenceClient,
    Interrupted,
    drive_in_turns,
)
from tengen.inference.central.messages import MAX_ROWS, Stream
from tengen.inference.central.places import Place, Places, servers_in_order
from tengen.inference.central.server import (
    INFERENCE,
    InferenceServer,
    ServerStats,
    ask_model,
    connect_rows,
    serve_rows,
)

__all__ = [
    "INFERENCE",
    "MAX_ROWS",
    "Asker",
    "InferenceClient",
    "InferenceServer",
    "Interrupted",
    "Place",
    "Places",
    "ServerStats",
    "Stream",
    "ask_model",
    "connect_rows",
    "drive_in_turns",
    "serve_rows",
    "servers_in_order",
]
