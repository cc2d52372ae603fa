"""A server that speaks OpenAI's chat protocol with prepared answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def chat_server(answer: Callable[[list[dict[str, Any]]], str]) -> Iterator[str]:
    """Serve answers to chats on a free port; gives the address."""

    def reply(body: Any) -> dict[str, Any]:
        message = {"role": "assistant", "content": answer(body["messages"])}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        said = {"id": "1", "object": "chat.completion", "created": 1, "model": "prepared"}
        return {**said, "choices": [choice], "usage": usage}

    models = {"object": "list", "data": [{"id": "prepared", "object": "model"}]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._say(models)

        def do_POST(self) -> None:
            self._say(reply(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def _say(self, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
