"""A server that speaks OpenAI's chat protocol with prepared answers, or fails as it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ChatServer(ThreadingHTTPServer):
    """Answers with the next entry of its script; when that is used up, with what `answer` says to a chat."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, answer: Callable[[list[dict[str, Any]]], str | None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.model, self.finish = answer, "prepared", "stop"
        self.usage: Any = {"prompt_tokens": 11, "completion_tokens": 9, "total_tokens": 20}
        self.usages: list[Any] = []
        """Of the next answers, the last one first."""
        self.script: list[tuple[int, str]] = []
        """Status and text; with a status of 0 it hangs up."""
        self.headers: dict[str, str] = {}
        self.seen: list[Any] = []
        self.keys: list[str | None] = []
        self.adapters: list[str] = []
        """Names of what is loaded, as vLLM has it: a name is taken until it is unloaded."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_GET(self) -> None:
        models = [{"id": self.server.model, "object": "model"}]
        self._say(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        server, body = self.server, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.seen.append(body)
        server.keys.append(self.headers["Authorization"])
        status, said = server.script.pop(0) if server.script else (200, None)
        if said is None and self.path.endswith("load_lora_adapter"):
            name, loads = body["lora_name"], self.path.endswith("/load_lora_adapter")
            status, said = (200, "Success") if loads != (name in server.adapters) else (400, "no")
            if status == 200:
                (server.adapters.append if loads else server.adapters.remove)(name)
        if status == 0:
            self.connection.close()
        elif said is not None:
            self._say(status, said)
        else:
            message = {"role": "assistant", "content": server.answer(body["messages"])}
            choice = {"index": 0, "message": message, "finish_reason": server.finish}
            made = {"id": "1", "object": "chat.completion", "created": 1, "model": server.model}
            usage = server.usages.pop() if server.usages else server.usage
            used = {} if usage is None else {"usage": usage}
            self._say(200, {**made, "choices": [choice], **used})

    def _say(self, status: int, content: Any) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def chat_server(answer: Callable[[list[dict[str, Any]]], str | None]) -> Iterator[ChatServer]:
    """Serve answers to chats on a free port."""
    with ChatServer(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
