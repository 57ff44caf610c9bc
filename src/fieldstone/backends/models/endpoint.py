"""A model behind HTTP. What it answers is bounded before it is read, and what went wrong is told without its words."""

import asyncio

import httpx


class EndpointFailed(Exception):
    """Why there is no answer, in a sentence. Nothing of a body is in it: it may repeat the key, or the texts."""


class RequestRefused(EndpointFailed):
    """It is this request that is not answered: the next one may be."""


class Endpoint:
    """Retries are the caller's. The key is sent to this URL and stands nowhere else: redirects are not followed.

    `whose` names the settings that a sentence points to: the embedder's, the judge's, the summarizer's.
    """

    def __init__(self, url: str, path: str, *, key: str | None, timeout_ms: int, whose: str) -> None:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_ms / 1000)
        self._url = f"{url.rstrip('/')}/{path}"
        self._timeout_ms = timeout_ms
        self._whose = whose

    @property
    def is_closed(self) -> bool:
        return self._client.is_closed

    async def post(self, body: bytes, *, most_bytes: int) -> bytes:
        """The body of its answer, or `EndpointFailed`."""
        if self.is_closed:
            raise EndpointFailed(f"The {self._whose} is closed.")
        try:
            # httpx counts the time between two bytes: an endpoint that trickles would never be late.
            async with asyncio.timeout(self._timeout_ms / 1000):
                async with self._client.stream("POST", self._url, content=body) as answer:
                    self._check_status(answer.status_code)
                    return await _read(answer, most_bytes)
        except (TimeoutError, httpx.TimeoutException):
            raise EndpointFailed(f"The endpoint did not answer within {self._timeout_ms} ms.") from None
        except httpx.HTTPError as error:
            # Its message may quote a header, and the key with it.
            raise EndpointFailed(f"The endpoint cannot be used: {type(error).__name__}.") from None

    async def close(self) -> None:
        await self._client.aclose()

    def _check_status(self, status: int) -> None:
        whose = self._whose
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise EndpointFailed(f"The endpoint refused the key ({status}): see {whose}_key.")
        if status == httpx.codes.NOT_FOUND:
            raise EndpointFailed(
                f"The endpoint knows no such address or model (404): see {whose}_url and {whose}_model."
            )
        if status in (httpx.codes.BAD_REQUEST, httpx.codes.REQUEST_ENTITY_TOO_LARGE, httpx.codes.UNPROCESSABLE_ENTITY):
            raise RequestRefused(f"The endpoint refused the request ({status}).")
        if status != httpx.codes.OK:
            raise EndpointFailed(f"The endpoint answered with the status {status}.")


class Rest:
    """After a failure nobody waits for an endpoint for a while."""

    def __init__(self, ms: int) -> None:
        self._ms = ms
        self._until_s = 0.0

    @property
    def is_on(self) -> bool:
        return asyncio.get_running_loop().time() < self._until_s

    def begin(self) -> None:
        self._until_s = asyncio.get_running_loop().time() + self._ms / 1000


async def _read(answer: httpx.Response, most_bytes: int) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise EndpointFailed("The endpoint compressed its answer, which it was asked not to do.")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise EndpointFailed(f"The endpoint's answer is longer than {most_bytes} bytes.")
    return bytes(body)
