"""JSON over HTTP, with retries: what talking to a model server takes."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Mapping
from typing import Any

from codea1_env.agents.llm.completions import BackendError
from codea1_env.support.extras import require

_AGAIN = frozenset([408, 409, 425, 429, 500, 502, 503, 504])
"""Answers after which the same request may succeed."""
FIRST_DELAY = 0.5
"""Seconds before the second attempt; each further delay is twice as long."""
_SHOWN = 300
"""Characters of a server's error message that are repeated."""
_GIVE_KEY = "Give the server's key in the environment as OPENAI_API_KEY"
_HINTS = {
    401: _GIVE_KEY,
    403: _GIVE_KEY,
    404: "Check the server's address (it usually ends with /v1) and the model's name",
}
_OWN = re.compile(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)
"""This machine's own servers, which no proxy of the environment reaches."""


class JSONClient:
    """Sends requests to one server, from any number of threads.

    Args:
        base_url: Like "http://127.0.0.1:8000/v1".
        api_key: Sent as a bearer token. It is in no message.
        timeout: Seconds to wait for one answer.
        attempts: How often a request is sent before giving up.
        headers: More headers of every request. They are in no message.

    Raises:
        ValueError: An argument is wrong.
        MissingExtraError: httpx is not installed.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        timeout: float = 300.0,
        attempts: int = 5,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"Expect base_url to begin with http:// or https://, actually: {base_url!r}"
            )
        if attempts < 1:
            raise ValueError(f"Expect attempts to be at least 1, actually: {attempts!r}")
        self.base_url = base_url.rstrip("/")
        self.attempts = attempts
        self._httpx: Any = require("httpx", "evaluation")
        self._client = self._httpx.Client(
            headers=({} if api_key is None else {"Authorization": f"Bearer {api_key}"})
            | dict(headers or {}),
            timeout=timeout,
            follow_redirects=True,
            limits=self._httpx.Limits(max_connections=None),  # as many as there are threads
            trust_env=_OWN.match(base_url) is None,
            verify=ssl.create_default_context(),  # what the machine trusts
        )

    def close(self) -> None:
        """Close the connections that are kept for further requests."""
        self._client.close()

    def ask(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        cancelled: threading.Event | None = None,
        *,
        decode: bool = True,
    ) -> Any:
        """Send a document, or ask for one, and return the answer.

        Args:
            path: Below `base_url`.
            body: The document that is sent; None to ask for one.
            cancelled: Once it is set, there are no further attempts.
            decode: The answer is JSON; False for any text.

        Raises:
            BackendError: The server cannot be reached, or answers with an error, also after all attempts.
        """
        method = "GET" if body is None else "POST"
        # Not httpx' own encoding: it refuses the lone surrogates that models write.
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.base_url}/{path.lstrip('/')}"
        headers = {"Content-Type": "application/json"}
        delay, reason = FIRST_DELAY, ""
        for attempt in range(self.attempts):
            if attempt and (cancelled or threading.Event()).wait(delay):
                break
            delay *= 2
            try:
                answer = self._client.request(method, url, content=data, headers=headers)
                if answer.is_success:
                    return answer.json() if decode else answer.text
            except (self._httpx.HTTPError, self._httpx.InvalidURL, ValueError) as error:
                reason = str(error) or type(error).__name__
                continue
            code = answer.status_code
            reason = f"{code} {_message(answer)}"
            if code not in _AGAIN:
                message = f"Expect {url} to accept the request, actually: {reason}. "
                raise BackendError((message + _HINTS.get(code, "")).rstrip())
            asked = answer.headers.get("Retry-After", "")
            delay = max(delay, float(asked)) if asked.isdigit() else delay
        raise BackendError(
            f"Expect an answer from {url}, actually after {self.attempts} attempts: {reason}. Start the server, "
            "or check its address, and go on with --resume"
        )


def _message(answer: Any) -> str:
    """What a server says about its error: usually {"error": {"message": ...}}."""
    text: str = answer.text
    try:
        found = answer.json()
        found = found.get("error", found)
        text = str(found.get("message", found))
    except (ValueError, AttributeError):
        pass
    return text.strip()[:_SHOWN] or str(answer.reason_phrase)
