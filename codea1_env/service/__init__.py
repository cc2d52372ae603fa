"""Verdicts over HTTP: a sandbox behind SandboxFusion's interface, and behind one of our own.

Needs the extra `service`; the modules of it are imported only when an application is made. See docs/service.md.
"""

from .app import Runner, Service, make_app
from .gate import Admission
from .serving import Address, open_address, read_token, run_server, serve

__all__ = [
    "Address",
    "Admission",
    "Runner",
    "Service",
    "make_app",
    "open_address",
    "read_token",
    "run_server",
    "serve",
]
