"""A real S3-compatible server on loopback, and servers that misbehave."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pyarrow.fs as pa_fs


class ObjectStore:
    """A running server; `url` is what AWS_ENDPOINT_URL is set to."""

    def __init__(self) -> None:
        # Here, so that whoever only collects tests does not pay for it.
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.address = f"{host}:{port}"
        self.url = f"http://{self.address}"

    def client(self) -> pa_fs.S3FileSystem:
        return pa_fs.S3FileSystem(
            endpoint_override=self.address,
            scheme="http",
            region="us-east-1",
            access_key="key",
            secret_key="secret",
            allow_bucket_creation=True,
        )

    def put(self, bucket: str, contents: dict[str, bytes]) -> None:
        client = self.client()
        client.create_dir(bucket)
        for key, content in contents.items():
            with client.open_output_stream(f"{bucket}/{key}", compression=None) as out:
                out.write(content)

    def put_folder(self, bucket: str, folder: Path) -> None:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self.put(bucket, {str(path.relative_to(folder)): path.read_bytes() for path in paths})

    @property
    def environment(self) -> dict[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        return {"AWS_ENDPOINT_URL": self.url, **keys}

    def stop(self) -> None:
        self._server.stop()


class _Refuses(BaseHTTPRequestHandler):
    status = 403
    num_requests = 0

    def do_GET(self) -> None:
        type(self).num_requests += 1
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def refusing_server(status: int) -> Iterator[tuple[str, type[_Refuses]]]:
    handler = type("Refuses", (_Refuses,), {"status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()


@contextmanager
def silent_server() -> Iterator[tuple[str, Callable[[], int]]]:
    """A server that takes connections and never says a word, and how many there have been so far."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", partial(_num_waiting, listening)


def _num_waiting(listening: socket.socket) -> int:
    listening.setblocking(False)
    for num_waiting in count():
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return num_waiting
    raise AssertionError


@contextmanager
def nobody_there() -> Iterator[str]:
    """An address at which nobody listens, and nobody else can: its port is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
