"""OpenAI's `POST …/chat/completions`, asked one thing at a time: an instruction, and the data that it is about.

The data goes as JSON in a message of its own, and JSON comes back. A text in it that tries to talk to the model cannot
leave its string; whether the model listens to it all the same, whoever asks has to reckon with.
"""

from typing import Final

import msgspec
from msgspec import Struct

from fieldstone.backends.models.endpoint import Endpoint, EndpointFailed, RequestRefused

PATH: Final = "chat/completions"


class Chat:
    """One model at one endpoint."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model

    @property
    def is_closed(self) -> bool:
        return self._endpoint.is_closed

    async def ask(self, instruction: str, data: Struct, *, most_tokens: int, most_bytes: int) -> str:
        """What the model says, or `EndpointFailed`: it refused, or did not answer."""
        said = _Said("system", instruction), _Said("user", msgspec.json.encode(data).decode())
        body = msgspec.json.encode(_Request(self._model, said, max_tokens=most_tokens))
        return _content(await self._endpoint.post(body, most_bytes=most_bytes))

    async def close(self) -> None:
        await self._endpoint.close()


def sendable(text: str) -> str:
    """Half of a surrogate pair is no character, and no JSON holds it."""
    return text.encode(errors="replace").decode()


class _Said(Struct, frozen=True, omit_defaults=True):
    role: str
    content: str | None = None
    refusal: str | None = None


class _Format(Struct, frozen=True):
    type: str = "json_object"


class _Request(Struct, frozen=True):
    model: str
    messages: tuple[_Said, ...]
    max_tokens: int
    temperature: int = 0
    response_format: _Format = _Format()


class _Choice(Struct, frozen=True):
    message: _Said


class _Answer(Struct, frozen=True):
    choices: list[_Choice]


_answer_decoder: Final = msgspec.json.Decoder(_Answer)


def _content(body: bytes) -> str:
    try:
        [choice] = _answer_decoder.decode(body).choices
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors, and so are bad UTF-8 and a wrong count
        raise EndpointFailed("The endpoint's answer is not one of a chat.") from None
    if choice.message.refusal or not choice.message.content:
        raise RequestRefused("The model refused, or said nothing.")
    return choice.message.content
