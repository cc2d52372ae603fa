"""JSON over HTTP, with retries: what talking to a model server takes, without a package for it."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from codea1_env.agents.llm.completions import BackendError

_AGAIN = frozenset([408, 409, 425, 429, 500, 502, 503, 504])
"""Answers after which the same request may succeed."""
_SHOWN = 300
"""Characters of a server's error message that are repeated."""


class JSONClient:
    """Sends requests to one server, from any number of threads.

    Args:
        base_url: Like "http://127.0.0.1:8000/v1".
        api_key: Sent as a bearer token. It is in no message.
        timeout: Seconds to wait for one answer.
        attempts: How often a request is sent before giving up.
        first_delay: Seconds before the second attempt; each further delay is twice as long.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        timeout: float = 300.0,
        attempts: int = 5,
        first_delay: float = 0.5,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"Expect base_url to begin with http:// or https://, actually: {base_url!r}"
            )
        if attempts < 1:
            raise ValueError(f"Expect attempts to be at least 1, actually: {attempts!r}")
        self.base_url = base_url.rstrip("/")
        self.timeout = timeout
        self.attempts = attempts
        self.first_delay = first_delay
        self._api_key = api_key

    def get(self, path: str) -> Any:
        """Ask for a document. See `post`."""
        return self._send(path, None, threading.Event(), decode=True)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        cancelled: threading.Event | None = None,
        *,
        decode: bool = True,
    ) -> Any:
        """Send a document and return the answer.

        Args:
            path: Below `base_url`.
            body: The document.
            cancelled: Once it is set, there are no further attempts.
            decode: The answer is JSON; False for any text.

        Raises:
            BackendError: The server cannot be reached, or answers with an error, also after all attempts.
        """
        data = json.dumps(body).encode()
        return self._send(path, data, cancelled or threading.Event(), decode=decode)

    def _send(
        self, path: str, data: bytes | None, cancelled: threading.Event, *, decode: bool
    ) -> Any:
        url = f"{self.base_url}/{path.lstrip('/')}"
        delay, reason = self.first_delay, ""
        for attempt in range(self.attempts):
            if attempt and cancelled.wait(delay):
                break
            delay *= 2
            try:
                text = self._once(url, data)
                return json.loads(text) if decode else text
            except urllib.error.HTTPError as error:
                reason = f"{error.code} {_message(error)}"
                if error.code not in _AGAIN:
                    raise BackendError(_hint(url, error.code, reason)) from error
                asked = error.headers.get("Retry-After", "")
                delay = max(delay, float(asked)) if asked.isdigit() else delay
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise BackendError(
            f"Expect an answer from {url}, actually after {self.attempts} attempts: {reason}. Start the server, "
            "or check base_url, and go on with --resume"
        )

    def _once(self, url: str, data: bytes | None) -> str:
        headers = {"Content-Type": "application/json"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = urllib.request.Request(url, data, headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            text: str = response.read().decode()
        return text


def _message(error: urllib.error.HTTPError) -> str:
    """What a server says about its error: usually {"error": {"message": ...}}."""
    try:
        text = error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    try:
        found = json.loads(text)
        found = found.get("error", found)
        text = str(found.get("message", found))
    except (ValueError, AttributeError):
        pass
    return text.strip()[:_SHOWN] or str(error.reason)


def _hint(url: str, code: int, reason: str) -> str:
    todo = {
        401: "Give the server's key as api_key, or in the environment as OPENAI_API_KEY",
        403: "Give the server's key as api_key, or in the environment as OPENAI_API_KEY",
        404: "Check base_url (it usually ends with /v1) and the model's name",
    }
    return f"Expect {url} to accept the request, actually: {reason}. {todo.get(code, '')}".rstrip()
