"""An object store that speaks S3, on loopback: for tests only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
import pytest
from fsspec.spec import AbstractFileSystem
from moto.server import ThreadedMotoServer


@contextmanager
def object_store() -> Iterator[AbstractFileSystem]:
    """A store without buckets, which the environment names while the block runs."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "AWS_ENDPOINT_URL": f"http://{host}:{port}",
                "AWS_ACCESS_KEY_ID": "of-a-test",
                "AWS_SECRET_ACCESS_KEY": "of-a-test",
                "AWS_DEFAULT_REGION": "us-east-1",
            }.items():
                patch.setenv(name, value)
            # One that was made before would ask another server.
            fsspec.get_filesystem_class("s3").clear_instance_cache()
            yield fsspec.filesystem("s3", skip_instance_cache=True)
    finally:
        server.stop()
