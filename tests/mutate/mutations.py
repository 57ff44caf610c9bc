"""The list: every place where text becomes clean, or is refused or kept back for what it holds, and its scrub left out.

tests/house/test_mutations.py holds it against the source: a text that is no longer there, and a scrub that no mutation
takes out, fail it.
"""

from typing import Final

from tests.mutate.mutation import Mutation

REDACTION: Final = "tests/protocol/test_redaction.py"
SCRUBBING: Final = "tests/protocol/test_scrubbing.py"
SWEEP: Final = "tests/protocol/test_sweep.py"
SERVER: Final = "tests/servers/test_scrubbing.py"
HARNESS: Final = "tests/redact/test_harness.py"
MARKERS: Final = "tests/redact/test_markers.py"
FORMS: Final = "tests/redact/test_forms.py"

NO_TEXT_FIELD: Final = f"{REDACTION}::test_no_text_field_of_any_operation_keeps_a_secret"
NO_ID: Final = f"{REDACTION}::test_an_id_that_holds_a_secret_is_refused_and_not_repeated"


def _bypassed(name: str, removes: str, file: str, text: str, replacement: str) -> Mutation:
    """One text field of one operation goes past the harness."""
    return Mutation(name, removes, file, text, replacement, (NO_TEXT_FIELD,))


# --- the texts of each operation -------------------------------------------------------------------------------------

REGISTER: Final = (
    _bypassed(
        "register-role",
        "the cleaning of an agent's role",
        "field/register.py",
        "AgentTexts(role, ",
        "AgentTexts(self._request.role, ",
    ),
    _bypassed(
        "register-interests",
        "the cleaning of an agent's interests",
        "field/register.py",
        "tuple(interests)),\n        )\n",
        "tuple(self._request.interests or ())),\n        )\n",
    ),
    _bypassed(
        "register-answer-role",
        "the cleaning of the role in REGISTER's answer",
        "field/register.py",
        "AgentProfile(agent_id, role, ",
        "AgentProfile(agent_id, self._request.role, ",
    ),
    _bypassed(
        "register-answer-interests",
        "the cleaning of the interests in REGISTER's answer",
        "field/register.py",
        '"idle", tuple(interests), ',
        '"idle", tuple(self._request.interests or ()), ',
    ),
)

RECORD: Final = (
    _bypassed(
        "record-content",
        "the cleaning of a unit's content",
        "field/record.py",
        "content=next(rest),",
        "content=(next(rest), self._request.content)[1],",
    ),
    _bypassed(
        "record-purpose",
        "the cleaning of a unit's purpose",
        "field/record.py",
        "purpose=next(rest),",
        'purpose=(next(rest), intent.purpose or "")[1],',
    ),
    _bypassed(
        "record-question",
        "the cleaning of a unit's question",
        "field/record.py",
        "question=None if intent.question is None else next(rest),",
        "question=None if intent.question is None else (next(rest), intent.question)[1],",
    ),
    _bypassed(
        "record-reasoning",
        "the cleaning of a unit's reasoning",
        "field/record.py",
        "reasoning=None if confidence.reasoning is None else next(rest),",
        "reasoning=None if confidence.reasoning is None else (next(rest), confidence.reasoning)[1],",
    ),
    _bypassed(
        "record-evidence",
        "the cleaning of a unit's evidence",
        "field/record.py",
        "evidence=tuple(islice(rest, len(confidence.evidence))),",
        "evidence=(tuple(islice(rest, len(confidence.evidence))), tuple(confidence.evidence))[1],",
    ),
    _bypassed(
        "record-assumptions",
        "the cleaning of a unit's assumptions",
        "field/record.py",
        "assumptions=tuple(islice(rest, len(confidence.assumptions))),",
        "assumptions=(tuple(islice(rest, len(confidence.assumptions))), tuple(confidence.assumptions))[1],",
    ),
    _bypassed(
        "record-descriptions",
        "the cleaning of the descriptions of a unit's relations",
        "field/record.py",
        "None if relation.description is None else next(rest) for",
        "None if relation.description is None else (next(rest), relation.description)[1] for",
    ),
)

OTHER_OPERATIONS: Final = (
    _bypassed(
        "commit-reasoning",
        "the cleaning of the reasoning that COMMIT brings",
        "field/commit.py",
        "reasoning=None if self._confidence.reasoning is None else next(rest),",
        "reasoning=None if self._confidence.reasoning is None else (next(rest), self._confidence.reasoning)[1],",
    ),
    _bypassed(
        "commit-evidence",
        "the cleaning of the evidence that COMMIT brings",
        "field/commit.py",
        "evidence=tuple(islice(rest, len(self._confidence.evidence))),",
        "evidence=(tuple(islice(rest, len(self._confidence.evidence))), tuple(self._confidence.evidence))[1],",
    ),
    _bypassed(
        "commit-assumptions",
        "the cleaning of the assumptions that COMMIT brings",
        "field/commit.py",
        "assumptions=tuple(rest),",
        "assumptions=(tuple(rest), tuple(self._confidence.assumptions))[1],",
    ),
    _bypassed(
        "discard-reason",
        "the cleaning of DISCARD's reason",
        "field/discard.py",
        "ReasonText(clean[0])",
        'ReasonText(self._request.reason or "")',
    ),
    _bypassed(
        "retract-reason",
        "the cleaning of RETRACT's reason",
        "field/retract.py",
        "ReasonText(clean[0])",
        "ReasonText(self._request.reason)",
    ),
    _bypassed(
        "attune-hint",
        "the cleaning of the hint that a read leaves behind",
        "field/observe.py",
        "HintText(clean[0])",
        'HintText(self._hint or "")',
    ),
    Mutation(
        "conflict-description",
        "the cleaning of what the field says of a conflict that it found",
        "field/detecting.py",
        "found.verdict.detected_by, description)",
        "found.verdict.detected_by, found.verdict.description)",
        (f"{SCRUBBING}::test_what_the_field_says_of_a_conflict_does_not_quote_a_secret_that_became_known_late",),
    ),
)

# --- ids that callers choose -----------------------------------------------------------------------------------------


def _unchecked(kind: str, file: str, text: str, value: str) -> Mutation:
    """An id of this kind is not among those that are looked at."""
    replacement = text.replace(value, '"unchecked"')
    return Mutation(f"{kind}-id", f"the refusal of a secret in place of {kind} ids", file, text, replacement, (NO_ID,))


IDS: Final = (
    _unchecked("agent", "field/register.py", '("agent", self._request.id)', "self._request.id"),
    _unchecked("session", "field/record.py", '("session", self.message.session_id)', "self.message.session_id"),
    _unchecked("task", "field/record.py", '("task", self._intent.task_id)', "self._intent.task_id"),
    _unchecked("target", "field/record.py", '("unit", relation.target_id)', "relation.target_id"),
)

# --- texts that are stored, or come from another store ----------------------------------------------------------------

SWEEPING: Final = (
    Mutation(
        "sweep-find",
        "the search for late secrets in stored texts",
        "field/sweep.py",
        "await asyncio.to_thread(harness.clean_groups, groups)",
        "[type(each)(group, ()) for group in groups for each in harness.clean_groups([[]])]",
        (f"{SWEEP}::test_a_sweep_clears_a_late_secret_from_everything_that_is_told",),
    ),
    Mutation(
        "sweep-replace",
        "the cleaning of a stored text that takes the place of the old one",
        "field/sweep.py",
        "with_strings(found.texts, clean)",
        "with_strings(found.texts, strings_of(found.texts))",
        (f"{SWEEP}::test_a_sweep_clears_a_late_secret_from_everything_that_is_told",),
    ),
    Mutation(
        "sweep-answers",
        "the search for late secrets in remembered answers",
        "field/sweep.py",
        "[bool(group.found) for group in harness.clean_groups([[body.decode()] for body in bodies])]",
        "[False for body in bodies]",
        (f"{SWEEP}::test_no_byte_of_any_file_holds_what_was_swept",),
    ),
    Mutation(
        "sweep-caches",
        "the forgetting of texts that are kept in memory",
        "field/sweep.py",
        "        self._forget_texts()\n",
        "",
        (f"{SWEEP}::test_a_sweep_clears_a_late_secret_from_everything_that_is_told",),
    ),
    Mutation(
        "sweep-names",
        "the reading again of names that were rewritten",
        "field/sweep.py",
        "        await self._state.reload_names()\n",
        "",
        (f"{SWEEP}::test_names_that_held_it_stay_apart_and_their_agents_go_on",),
    ),
    Mutation(
        "sweep-index",
        "the indexing again of texts that were rewritten",
        "field/sweep.py",
        "        await self._follower.replace(texts)\n",
        "",
        (f"{SWEEP}::test_what_was_swept_verifies_rebuilds_and_is_found_by_what_it_says_now",),
    ),
    Mutation(
        "sweep-vectors",
        "the erasing of vectors that were made of a secret",
        "field/sweep.py",
        "        await self._state.store.vectors.erase(units)\n",
        "",
        (f"{SCRUBBING}::test_what_was_swept_is_embedded_anew",),
    ),
    Mutation(
        "sweep-residue",
        "the scouring of pages and journals that still hold what was replaced",
        "field/sweep.py",
        '"none" if await store.scour() else "pending"',
        '"none"',
        (f"{SWEEP}::test_no_byte_of_any_file_holds_what_was_swept",),
    ),
)

IMPORT: Final = (
    Mutation(
        "import-entry",
        "the refusal of a secret in an imported entry",
        "field/transfer.py",
        "        _refuse_secrets(stored.body, entry, number, harness)\n        told",
        "        told",
        (f"{SCRUBBING}::test_an_import_with_a_secret_in_place_of_an_id_is_refused",),
    ),
    Mutation(
        "import-text",
        "the refusal of a secret in an imported text",
        "field/transfer.py",
        "    _refuse_secrets(stored.body, entry, number, harness)\n    texts.append",
        "    texts.append",
        (f"{SCRUBBING}::test_an_import_whose_text_holds_a_secret_is_refused_and_one_without_is_taken_in",),
    ),
    Mutation(
        "import-search",
        "the search for secrets in all that is imported",
        "field/transfer.py",
        "harness.clean_one(body.decode()).found",
        "()",
        (f"{SCRUBBING}::test_an_import_whose_text_holds_a_secret_is_refused_and_one_without_is_taken_in",),
    ),
)

# --- refusals and log lines -------------------------------------------------------------------------------------------

LEAVING: Final = (
    Mutation(
        "refusal-own-route",
        "the scrubbing of refusals on every route",
        "servers/http/endpoint.py",
        "visit.field.scrub(error.message)",
        "error.message",
        (f"{SERVER}::test_a_refusal_on_an_operations_own_route_repeats_no_secret",),
    ),
    Mutation(
        "refusal-undecoded",
        "the scrubbing of the refusal of a message that cannot be decoded",
        "servers/http/operations.py",
        "return refusal(_scrubbed(visit, bad.error), bad.operation)",
        "return refusal(bad.error, bad.operation)",
        (f"{SERVER}::test_a_message_that_cannot_be_decoded_is_refused_without_its_secret",),
    ),
    Mutation(
        "refusal-message",
        "the scrubbing of the refusal of a message",
        "servers/http/operations.py",
        "return refusal(_scrubbed(visit, error), message.operation)",
        "return refusal(error, message.operation)",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "refusal-undecoded-among-many",
        "the scrubbing of the refusal of a message of an array that cannot be decoded",
        "servers/http/operations.py",
        "error_body(_scrubbed(visit, bad.error), bad.operation)",
        "error_body(bad.error, bad.operation)",
        (f"{SERVER}::test_one_of_many_messages_that_cannot_be_decoded_is_refused_without_its_secret",),
    ),
    Mutation(
        "refusal-among-many",
        "the scrubbing of the refusal of a message of an array",
        "servers/http/operations.py",
        "error_body(_scrubbed(visit, error), message.operation)",
        "error_body(error, message.operation)",
        (f"{SERVER}::test_one_of_many_messages_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "refusal-scrub",
        "the scrubbing of the refusals of messages",
        "servers/http/operations.py",
        "visit.field.scrub(error.message)",
        "error.message",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "field-scrub",
        "the field's part in the scrubbing of what leaves",
        "field/field.py",
        "return self._cleaning.scrub(text)",
        "return text",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "log-line",
        "the scrubbing of every text of a log line",
        "servers/http/logs.py",
        "self._scrub(value) if isinstance(value, str) else value",
        "value",
        (f"{SERVER}::test_every_text_of_a_log_line_is_scrubbed",),
    ),
    Mutation(
        "log-step",
        "the scrubbing step before a log line is written",
        "servers/http/logs.py",
        "            Scrubbing(scrub),\n",
        "",
        (f"{SERVER}::test_every_text_of_a_log_line_is_scrubbed",),
    ),
    Mutation(
        "log-scrub",
        "the means to scrub of that step",
        "servers/http/logs.py",
        "self._scrub = scrub",
        "self._scrub = str",
        (f"{SERVER}::test_every_text_of_a_log_line_is_scrubbed",),
    ),
    Mutation(
        "log-fields",
        "the scrubbing of the server's log by what its fields know",
        "servers/http/entrance.py",
        "text = field.scrub(text)",
        "text = str(text)",
        (f"{SERVER}::test_no_log_line_holds_a_secret_of_an_open_field",),
    ),
    Mutation(
        "log-of-server",
        "the scrubbing of the log of a server that runs",
        "servers/http/serve.py",
        ", scrub=house.entrance.scrub)",
        ")",
        (f"{SERVER}::test_a_server_that_runs_scrubs_its_log",),
    ),
    Mutation(
        "given-secrets",
        "the secrets that come with the process",
        "wiring.py",
        ", _given_secrets(settings))",
        ")",
        (f"{SCRUBBING}::test_a_secret_of_the_environment_is_never_stored",),
    ),
    Mutation(
        "given-environment",
        "the secrets of the environment",
        "wiring.py",
        "    given |= secrets_in(os.environ)\n",
        "",
        (f"{SCRUBBING}::test_a_secret_of_the_environment_is_never_stored",),
    ),
    Mutation(
        "given-settings",
        "the keys among the settings",
        "wiring.py",
        '("key", "embedder_key", "judge_key", "secrets_key")',
        "()",
        (f"{SCRUBBING}::test_a_key_among_the_settings_is_never_stored",),
    ),
)

MUTATIONS: Final = (*REGISTER, *RECORD, *OTHER_OPERATIONS, *IDS, *SWEEPING, *IMPORT, *LEAVING)
