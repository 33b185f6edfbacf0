"""A small MaxCompute service on loopback: as much of its protocols as reading tables takes.

Tables are described in XML, download sessions in JSON; rows come as an Arrow stream without its schema, in chunks
with checksums, as the real client expects them. Connections can be cut in the middle of a stream.

The client takes most of a second to import, which whoever only collects tests should not pay for.
"""

import json
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

CHUNK_BYTES = 512
_NO_PARTITION = ""


@dataclass
class Service:
    """Tables by name, and for each its rows by partition; what is wrong with the connection; what was asked."""

    tables: dict[str, dict[str, pa.Table]] = field(default_factory=dict)
    batch_rows: int = 10
    cut_after_bytes: list[int] = field(default_factory=list)
    """The next answers with rows end after so many bytes, one after the other."""
    short_by_rows: list[int] = field(default_factory=list)
    """The next answers lack so many rows at their end, and are well-formed."""
    refuse: tuple[int, str] | None = None
    """Every request gets this status and error code."""
    modified: int = 1_700_000_000
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def add(self, name: str, rows: pa.Table, partition: str = _NO_PARTITION) -> None:
        self.tables.setdefault(name, {})[partition] = rows

    @property
    def row_ranges(self) -> list[str]:
        return [query["rowrange"] for _, query in self.requests if "rowrange" in query]

    def __enter__(self) -> "Service":
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        # It looks for the end of the test between requests: every 10 ms, instead of every half second.
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}/api"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Problem(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class _Handler(BaseHTTPRequestHandler):
    service: Service

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        self.service.requests.append((url.path, query))
        try:
            if self.service.refuse is not None:
                raise _Problem(*self.service.refuse)
            content, cut = self._answer(url.path.removeprefix("/api").strip("/").split("/"), query)
        except _Problem as problem:
            self._send(problem.status, _error_xml(problem.code))
        else:
            self._send(200, content, cut)

    do_POST = do_GET

    def _send(self, status: int, content: bytes, cut: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-odps-request-id", "0")
        self.end_headers()
        self.wfile.write(content if cut is None else content[:cut])
        self.close_connection = True

    def _answer(self, parts: list[str], query: dict[str, str]) -> tuple[bytes, int | None]:
        if parts[2:] == ["tunnel"]:
            host = self.headers["Host"]
            return host.encode(), None
        if parts[2:3] != ["tables"] or len(parts) != 4:
            raise _Problem(404, "NoSuchObject")
        partitions = self.service.tables.get(parts[3])
        if partitions is None:
            raise _Problem(404, "NoSuchTable")
        if "partitions" in query:
            return _partitions_xml(partitions), None
        if "downloads" in query or "downloadid" in query:
            return self._download(_chosen(partitions, query), query)
        if "partition" in query:
            return _partition_xml(_chosen(partitions, query), self.service.modified), None
        return _table_xml(parts[3], partitions, self.service.modified), None

    def _download(self, rows: pa.Table, query: dict[str, str]) -> tuple[bytes, int | None]:
        if "rowrange" not in query:
            session = {"DownloadID": "1", "Status": "normal", "RecordCount": rows.num_rows}
            return json.dumps({**session, "Schema": _schema(rows, [])}).encode(), None
        start, count = (int(number) for number in query["rowrange"].strip("()").split(","))
        count -= self.service.short_by_rows.pop(0) if self.service.short_by_rows else 0
        wanted = query["columns"].split(",") if "columns" in query else rows.schema.names
        chosen = rows.slice(start, count).select([name for name in rows.schema.names if name in wanted])
        cut = self.service.cut_after_bytes.pop(0) if self.service.cut_after_bytes else None
        return _framed(_messages(chosen, self.service.batch_rows)), cut


def _chosen(partitions: dict[str, pa.Table], query: dict[str, str]) -> pa.Table:
    partition = query.get("partition", _NO_PARTITION).replace("'", "").replace(",", "/")
    if partition not in partitions:
        raise _Problem(404, "NoSuchPartition")
    return partitions[partition]


def _messages(rows: pa.Table, batch_rows: int) -> bytes:
    """Record batches without the schema in front, which the client knows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks(), max_chunksize=batch_rows)
    return sink.getvalue().to_pybytes()[rows.schema.serialize().size :]


def _framed(data: bytes) -> bytes:
    """The size of chunks, then chunks with their checksums; the last one has the checksum of all."""
    from odps.tunnel.checksum import Checksum

    framed = struct.pack("!I", CHUNK_BYTES)
    all_data = Checksum()
    for start in range(0, len(data) + 1, CHUNK_BYTES):
        chunk = data[start : start + CHUNK_BYTES]
        one = Checksum()
        one.update(chunk)
        all_data.update(chunk)
        checksum = one if len(chunk) == CHUNK_BYTES else all_data
        framed += chunk + struct.pack("!I", int(checksum.getvalue()))
    return framed


def _schema(rows: pa.Table, keys: list[str], modified: int = 0) -> dict[str, Any]:
    from odps.tunnel.io.types import arrow_type_to_odps_type

    columns = [
        {"name": field.name, "type": str(arrow_type_to_odps_type(field.type)), "isNullable": True}
        for field in rows.schema
    ]
    partition_keys = [{"name": key, "type": "string"} for key in keys]
    sizes = {"lastModifiedTime": modified, "size": rows.nbytes}
    return {"columns": columns, "partitionKeys": partition_keys, **sizes}


def _error_xml(code: str) -> bytes:
    where = "<RequestId>0</RequestId><HostId>localhost</HostId>"
    return f"<Error><Code>{code}</Code><Message>{code}: no luck</Message>{where}</Error>".encode()


def _table_xml(name: str, partitions: dict[str, pa.Table], modified: int) -> bytes:
    first = next(iter(partitions))
    keys = [part.split("=")[0] for part in first.split("/") if part]
    schema = json.dumps(_schema(partitions[first], keys, modified))
    return f'<Table><Name>{name}</Name><Schema format="Json"><![CDATA[{schema}]]></Schema></Table>'.encode()


def _partition_xml(rows: pa.Table, modified: int) -> bytes:
    times = dict.fromkeys(("createTime", "lastDDLTime", "lastModifiedTime"), modified)
    meta = json.dumps({**times, "partitionSize": rows.nbytes})
    return f"<Partition><Schema><![CDATA[{meta}]]></Schema></Partition>".encode()


def _partitions_xml(partitions: dict[str, pa.Table]) -> bytes:
    listed = ""
    for partition in partitions:
        values = (part.split("=") for part in partition.split("/"))
        columns = "".join(f'<Column Name="{name}" Value="{value}"/>' for name, value in values)
        listed += f"<Partition>{columns}</Partition>"
    return f"<Partitions><Marker/><MaxItems>1000</MaxItems>{listed}</Partitions>".encode()
