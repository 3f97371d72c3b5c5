"""Requests and sessions between the processes of a service and its clients.

A `Client` connects, sends a greeting and one request as a line of JSON, and receives a
response. Then the connection is closed, or it becomes a session: a byte stream with the
service's own protocol. A `Server` accepts clients on a `Listener`: a socket in a
`HostFolder`, for this user on this host, or a network address, for other hosts
(`NetDoor`). A service that uses both has two servers. For example::

    ECHO = Dialect("echo", version=1)

    def open_pipe(connection: socket.socket, message: Message) -> None:
        threading.Thread(target=pipe, args=(connection.dup(),), daemon=True).start()

    service = Service(
        dialect=ECHO,
        questions={"say": lambda message: message["text"]},
        sessions={"pipe": open_pipe},
    )
    folder = HostFolder("echo", Path("/dev/shm/echo"))
    near = Server(folder.listen(), service)
    door = NetDoor(listen="127.0.0.1:0")  # token: TENGEN_ECHO_TOKEN
    far = Server(door.open(ECHO), service)

    client = Client(ECHO, far.address)  # or Client(ECHO, "/dev/shm/echo")
    client.ask({"ask": "say", "text": "hello"})  # "hello", or the service's error
    stream, _ = client.open({"ask": "pipe"})
    stream.sendall(b"bytes in the session's own protocol")

To shut down: ``near.close()``, ``far.close()``, close sessions, ``folder.remove()``.
"""

from tengen.transport.address import NetAddress, is_loopback, is_net
from tengen.transport.client import Client
from tengen.transport.folder import LOCK_NAME, SOCKET_NAME, FolderLock, HostFolder
from tengen.transport.lines import NoAnswer, ServiceFull
from tengen.transport.listener import Listener, NetDoor, fingerprint_of
from tengen.transport.owned import OwnedSocket
from tengen.transport.server import Server
from tengen.transport.service import RESUME, Dialect, Limits, Message, Service

__all__ = [
    "LOCK_NAME",
    "RESUME",
    "SOCKET_NAME",
    "Client",
    "Dialect",
    "FolderLock",
    "HostFolder",
    "Limits",
    "Listener",
    "Message",
    "NetAddress",
    "NetDoor",
    "NoAnswer",
    "OwnedSocket",
    "Server",
    "Service",
    "ServiceFull",
    "fingerprint_of",
    "is_loopback",
    "is_net",
]
