"""POST /v1/<operation> and /v1/messages: an envelope in, the field's answer out."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import DecodeError, Raw, json
from starlette.types import Scope

from fieldstone.core.errors import FieldError, InternalError, InvalidEnvelope, with_message
from fieldstone.core.replies import CompactionProgress, Reply
from fieldstone.core.requests import Attune, Detect, Message
from fieldstone.servers.http.answers import Answer, refusal, reply
from fieldstone.servers.http.body import read_body
from fieldstone.servers.http.compactions import Begun
from fieldstone.servers.http.endpoint import Handler, unbuilt
from fieldstone.servers.http.entrance import Visit
from fieldstone.wire.errors import ErrorBody, error_body
from fieldstone.wire.messages import BadMessage, decode_message
from fieldstone.wire.operations import OperationRoute

MOST_MESSAGES: Final = 1_000  # the contract's bound on an array

logger = structlog.get_logger("fieldstone.http")
_arrays = json.Decoder(list[Raw])


class Operations:
    def __init__(self, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes

    def handler(self, route: OperationRoute) -> Handler:
        if route.reply is None:
            return unbuilt(route.operation)
        most_bytes, operation = self._max_body_bytes, route.operation

        async def answer(visit: Visit) -> Answer:
            body = await read_body(visit.scope, visit.receive, most_bytes=most_bytes)
            try:
                message = decode_message(body, operation, visit.caller)
            except BadMessage as bad:
                raise bad.error from None
            if operation == "COMPACT" and _prefers_async(visit.scope):
                return _begun(await visit.field.begin_compaction(message))
            return reply(await visit.field.send(message))

        return answer

    async def messages(self, visit: Visit) -> Answer:
        body = await read_body(visit.scope, visit.receive, most_bytes=self._max_body_bytes)
        if body.lstrip()[:1] == b"[":
            envelopes = _split(body)
            visit.holds(len(envelopes))
            return reply(await _send_all(visit, envelopes))
        try:
            message = decode_message(body, caller=visit.caller)
        except BadMessage as bad:
            return refusal(await _scrubbed(visit, bad.error), bad.operation)
        try:
            return reply(await visit.field.send(message))._replace(operation=message.operation)
        except FieldError as error:
            return refusal(await _scrubbed(visit, error), message.operation)._replace(operation=message.operation)


def _prefers_async(scope: Scope) -> bool:
    return any(name == b"prefer" and b"respond-async" in value.lower() for name, value in scope["headers"])


def _begun(progress: CompactionProgress) -> Answer:
    """A dry run, and one that matches nothing, begin nothing: they are answered at once."""
    if not progress.compaction_id:
        return reply(progress.result)
    return reply(Begun(progress.compaction_id), 202)


async def _send_all(visit: Visit, envelopes: Sequence[Raw]) -> list[Reply | ErrorBody]:
    """In order. Writes that follow each other share a group commit, in which the writer keeps their order; a read
    waits for the writes before it."""
    answers: list[Reply | ErrorBody | asyncio.Task[Reply | ErrorBody]] = []
    for envelope in envelopes:
        try:
            message = decode_message(bytes(envelope), caller=visit.caller)
        except BadMessage as bad:
            answers.append(error_body(await _scrubbed(visit, bad.error), bad.operation))
            continue
        if isinstance(message.request, Attune | Detect):
            answers = [await _settled(answer) for answer in answers]
            answers.append(await _send_one(visit, message))
        else:
            answers.append(asyncio.create_task(_send_one(visit, message)))
    return [await _settled(answer) for answer in answers]


async def _send_one(visit: Visit, message: Message) -> Reply | ErrorBody:
    try:
        return await visit.field.send(message)
    except FieldError as error:
        return error_body(await _scrubbed(visit, error), message.operation)
    except Exception as broken:  # why: one that breaks has its place in the array, too, and the others go on
        logger.error("message failed", operation=message.operation, error=type(broken).__name__, exc_info=broken)
        return error_body(InternalError(), message.operation)


async def _scrubbed(visit: Visit, error: FieldError) -> FieldError:
    return with_message(error, await visit.field.scrubbed(error.message))


async def _settled(answer: Reply | ErrorBody | asyncio.Task[Reply | ErrorBody]) -> Reply | ErrorBody:
    return await answer if isinstance(answer, asyncio.Task) else answer


def _split(body: bytes) -> list[Raw]:
    try:
        envelopes = _arrays.decode(body)
    except RecursionError:
        raise InvalidEnvelope("The messages are nested too deeply.") from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidEnvelope("The messages are not valid JSON in UTF-8.") from error
    if len(envelopes) > MOST_MESSAGES:
        raise InvalidEnvelope(f"The array holds {len(envelopes)} messages; the most is {MOST_MESSAGES}.")
    return envelopes
