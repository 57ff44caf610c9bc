"""The list: every place where text becomes clean, or is refused or kept back for what it holds, and its scrub left out.

tests/house/test_mutations.py holds it against the source: a text that is no longer there, and a scrub that no mutation
takes out, fail it.
"""

from typing import Final

from tests.mutate.memory_mutations import MEMORIES
from tests.mutate.mutation import Mutation
from tests.mutate.plane_mutations import PLANES

REDACTION: Final = "tests/protocol/test_redaction.py"
SCRUBBING: Final = "tests/protocol/test_scrubbing.py"
REGISTRY: Final = "tests/field/test_registry.py"
TOLD_SECRET: Final = f"{REGISTRY}::test_an_id_or_a_scope_that_holds_a_secret_in_disguise_is_refused"
KEY_AGENTS: Final = "tests/access/test_keys_bounds.py::test_a_key_for_an_agent_whose_id_holds_a_secret_is_not_made"
SWEEP: Final = "tests/protocol/test_sweep.py"
SPLIT: Final = "tests/protocol/test_split_secrets.py"
SWEPT: Final = "tests/field/test_sweeping.py"
COLD_VECTORS: Final = "tests/conformance/test_cold_vectors.py"
SERVER: Final = "tests/servers/test_scrubbing.py"
HARNESS: Final = "tests/redact/test_harness.py"
MARKERS: Final = "tests/redact/test_markers.py"
KNOWN: Final = "tests/redact/test_known.py"
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
        "evidence=tuple(islice(rest, len(confidence.evidence)))",
        "evidence=(tuple(islice(rest, len(confidence.evidence))), tuple(confidence.evidence))[1]",
    ),
    _bypassed(
        "record-assumptions",
        "the cleaning of a unit's assumptions",
        "field/record.py",
        "assumptions=tuple(islice(rest, len(confidence.assumptions)))",
        "assumptions=(tuple(islice(rest, len(confidence.assumptions))), tuple(confidence.assumptions))[1]",
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

COMPACTION: Final = (
    Mutation(
        "compact-reason",
        "the cleaning of COMPACT's reason",
        "field/compaction_record.py",
        "ReasonText(clean[0])",
        'ReasonText(self._request.reason or "")',
        (f"{SCRUBBING}::test_the_reason_of_a_compaction_is_kept_without_its_secret",),
    ),
    Mutation(
        "policy-reason",
        "the cleaning of the reason of a run by a policy",
        "field/compaction_record.py",
        "ReasonText(reason)",
        "ReasonText(self.texts()[0])",
        (f"{SCRUBBING}::test_the_reason_of_a_run_by_a_policy_is_kept_without_a_late_secret",),
    ),
    Mutation(
        "synthesis-content",
        "the cleaning of what a summariser says",
        "field/synthesis.py",
        "                content=content,\n                purpose=purpose,\n",
        "                content=self._group.text,\n                purpose=purpose,\n",
        (f"{SCRUBBING}::test_a_synthesis_does_not_quote_a_secret_that_became_known_late",),
    ),
    Mutation(
        "synthesis-reasoning",
        "the cleaning of whom a synthesis quotes",
        "field/synthesis.py",
        "reasoning=reasoning,",
        "reasoning=list(self.texts())[2],",
        (f"{SCRUBBING}::test_a_synthesis_does_not_name_an_agent_whose_name_became_a_secret",),
    ),
    Mutation(
        "synthesis-after-purge",
        "the cleaning of a synthesis that is made anew",
        "field/purging.py",
        "mine = [next(rest) for _ in each.texts()]",
        "mine = [text for text in each.texts() if next(rest) is not None]",
        (f"{SCRUBBING}::test_a_synthesis_that_is_made_anew_after_a_purge_does_not_quote_a_late_secret",),
    ),
)

# --- ids that callers choose -----------------------------------------------------------------------------------------


def _unchecked(kind: str) -> Mutation:
    """An id of this kind is rewritten like a text, and not refused."""
    return Mutation(
        f"{kind}-id",
        f"the refusal of a secret in place of a {kind} id",
        "field/writer.py",
        "if name != cleaned:",
        f'if name != cleaned and kind != "{kind}":',
        (NO_ID,),
    )


IDS: Final = (
    *(_unchecked(kind) for kind in ("agent", "session", "task", "unit")),
    Mutation(
        "policy-name",
        "the refusal of a secret in place of a policy's name",
        "field/retention.py",
        '("policy", policy.name)',
        '("policy", "unchecked")',
        (f"{SCRUBBING}::test_a_retention_policy_with_a_secret_in_place_of_a_name_is_refused",),
    ),
    Mutation(
        "policy-session",
        "the refusal of a secret in place of a policy's session",
        "field/retention.py",
        '("session", session)',
        '("session", "unchecked")',
        (f"{SCRUBBING}::test_a_retention_policy_with_a_secret_in_place_of_a_name_is_refused",),
    ),
    Mutation(
        "secret-name",
        "the cleaning of a known secret's name, on record",
        "field/registry.py",
        "SecretTexts(name,",
        "SecretTexts(self.texts()[0],",
        (f"{REGISTRY}::test_a_name_that_looks_like_a_secret_is_rewritten_on_record",),
    ),
    Mutation(
        "secret-holder",
        "the cleaning of the user or run that a known secret belongs to, on record",
        "field/registry.py",
        ", holder))",
        ", None if holder is None else self.texts()[1]))",
        (f"{REGISTRY}::test_a_name_that_looks_like_a_secret_is_rewritten_on_record",),
    ),
    Mutation(
        "secret-tells-secret",
        "the refusal of a known secret whose name or holder is another one in disguise",
        "field/registry.py",
        "        await self._refuse_told(secret)\n",
        "",
        (TOLD_SECRET,),
    ),
    Mutation(
        "secret-tells-known",
        "the search for known secrets in the name and the holder of another one",
        "field/registry.py",
        "(await self._cleaning.harness()).holds_secret([secret.id, secret.scope])",
        "[]",
        (TOLD_SECRET,),
    ),
    Mutation(
        "secret-tells-itself",
        "the refusal of a known secret whose name or holder is its own value in disguise",
        "field/secrets.py",
        "if known and Known(known)",
        "if False and Known(known)",
        (TOLD_SECRET,),
    ),
    Mutation(
        "secret-told-own-value",
        "the search for a known secret's own value in its name and holder",
        "field/secrets.py",
        "refuse_told(secret, [KnownSecret(secret_id, value)])",
        "pass",
        (TOLD_SECRET,),
    ),
    Mutation(
        "secret-told-beside-the-field",
        "the search for known secrets in the name and the holder of another one, without a field",
        "field/secrets.py",
        "refuse_told(secret, self.known())",
        "pass",
        (TOLD_SECRET,),
    ),
    Mutation(
        "key-agents",
        "the refusal of a key for an agent whose id is a secret",
        "servers/http/keys.py",
        "await _refuse_secrets(visit, wanted.agents or ())",
        "pass",
        (KEY_AGENTS,),
    ),
    Mutation(
        "key-agent",
        "the search for secrets in the agents of a key",
        "servers/http/keys.py",
        "await visit.field.scrubbed(agent) != agent",
        "False",
        (KEY_AGENTS,),
    ),
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
        "        await self._forget(entries)\n",
        "",
        (f"{SWEPT}::test_no_reading_of_a_swept_text_stays_in_memory",),
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
        "await self._follower.replace({seq: each for seq, each in texts.items() if seq not in set(archived)})",
        "pass",
        (f"{SWEPT}::test_what_was_swept_is_found_by_the_words_that_are_left_and_by_no_other",),
    ),
    Mutation(
        "sweep-vectors",
        "the erasing of vectors that were made of a secret",
        "field/sweep.py",
        "        await self._meanings.cooling.erase(units)\n",
        "",
        (f"{SWEPT}::test_the_vector_of_a_swept_text_is_erased_also_where_the_model_is_silent",),
    ),
    Mutation(
        "sweep-cold-vectors",
        "the erasing of vectors in cold storage that were made of a secret",
        "backends/sqlite/vectors.py",
        "        await self._write(remove)\n        await self._cold.erase(seqs)\n",
        "        await self._write(remove)\n",
        (f"{COLD_VECTORS}::test_nothing_of_an_erased_vector_is_left_in_any_file_after_scouring",),
    ),
    Mutation(
        "sweep-embedding",
        "the embedding again of texts that were rewritten",
        "field/sweep.py",
        "        await self._embed(texts)\n",
        "",
        (f"{SWEPT}::test_a_swept_text_is_embedded_as_it_is_now",),
    ),
    Mutation(
        "sweep-residue",
        "the scouring of pages and journals that still hold what was replaced",
        "field/sweep.py",
        '"none" if await self._scouring.scour() else "pending"',
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
        "await field.scrubbed(error.message)",
        "error.message",
        (f"{SERVER}::test_a_refusal_on_an_operations_own_route_repeats_no_secret",),
    ),
    Mutation(
        "refusal-undecoded",
        "the scrubbing of the refusal of a message that cannot be decoded",
        "servers/http/operations.py",
        "return refusal(await _scrubbed(visit, bad.error), bad.operation)",
        "return refusal(bad.error, bad.operation)",
        (f"{SERVER}::test_a_message_that_cannot_be_decoded_is_refused_without_its_secret",),
    ),
    Mutation(
        "refusal-message",
        "the scrubbing of the refusal of a message",
        "servers/http/operations.py",
        "return refusal(await _scrubbed(visit, error), message.operation)",
        "return refusal(error, message.operation)",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "refusal-undecoded-among-many",
        "the scrubbing of the refusal of a message of an array that cannot be decoded",
        "servers/http/operations.py",
        "error_body(await _scrubbed(visit, bad.error), bad.operation)",
        "error_body(bad.error, bad.operation)",
        (f"{SERVER}::test_one_of_many_messages_that_cannot_be_decoded_is_refused_without_its_secret",),
    ),
    Mutation(
        "refusal-among-many",
        "the scrubbing of the refusal of a message of an array",
        "servers/http/operations.py",
        "error_body(await _scrubbed(visit, error), message.operation)",
        "error_body(error, message.operation)",
        (f"{SERVER}::test_one_of_many_messages_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "refusal-scrub",
        "the scrubbing of the refusals of messages",
        "servers/http/operations.py",
        "await visit.field.scrubbed(error.message)",
        "error.message",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "field-scrubbed",
        "the field's part in the scrubbing of refusals",
        "field/field.py",
        "return (await self._cleaning.harness()).clean_one(text).text",
        "return text",
        (f"{SERVER}::test_a_message_that_is_refused_is_told_without_its_secret",),
    ),
    Mutation(
        "field-scrub",
        "the field's part in the scrubbing of the log",
        "field/field.py",
        "return self._cleaning.scrub(text)",
        "return text",
        (f"{SERVER}::test_no_log_line_holds_a_secret_of_an_open_field",),
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
        "wiring/fields.py",
        ", given_secrets(settings))",
        ")",
        (f"{SCRUBBING}::test_a_secret_of_the_environment_is_never_stored",),
    ),
    Mutation(
        "given-environment",
        "the secrets of the environment",
        "wiring/access.py",
        "    given |= secrets_in(os.environ)\n",
        "",
        (f"{SCRUBBING}::test_a_secret_of_the_environment_is_never_stored",),
    ),
    Mutation(
        "given-settings",
        "the keys among the settings",
        "wiring/access.py",
        " for name, secret in own.items() if secret is not None}",
        " for name, secret in own.items() if secret is ...}",
        (f"{SCRUBBING}::test_a_key_among_the_settings_is_never_stored",),
    ),
)

# --- the road itself --------------------------------------------------------------------------------------------------

OVER_ENTRIES: Final = f"{SPLIT}::test_of_a_secret_split_over_entries_of_an_agent_the_later_part_is_taken_out"
OVER_A_RESTART: Final = f"{SPLIT}::test_a_restart_between_the_two_parts_changes_nothing"

IN_A_SUMMARY: Final = (
    "tests/protocol/test_compact_secrets.py::test_a_known_secret_in_a_summary_is_not_stored_whatever_its_form"
)

WRITER: Final = (
    Mutation(
        "writer-cleaning",
        "the cleaning of all that is written",
        "field/writer.py",
        "await _cleaned(harness, dirty)",
        "[CleanGroup(texts, ()) for texts in dirty]",
        (NO_TEXT_FIELD,),
    ),
    Mutation(
        "writer-group",
        "the cleaning of a group",
        "field/writer.py",
        "dirty, cleaned = await _cleaned_for(harness, group)",
        "dirty = [_texts_of(each.work) for each in group]; cleaned = [CleanGroup(texts, ()) for texts in dirty]",
        (NO_TEXT_FIELD,),
    ),
    Mutation(
        "writer-early",
        "that what is not cleaned early is cleaned in its turn",
        "field/writer.py",
        "cleaned = await self._clean_early(work)",
        "cleaned = Cleaned(_texts_of(work), CleanGroup(_texts_of(work), ()), await self._cleaning.harness())",
        (IN_A_SUMMARY,),
    ),
    Mutation(
        "writer-cleaned-early",
        "the cleaning of a step before its turn",
        "field/writer.py",
        "[clean] = await _cleaned(harness, [texts])",
        "clean = CleanGroup(texts, ())",
        (IN_A_SUMMARY,),
    ),
    Mutation(
        "writer-cleaned-again",
        "that a step is cleaned again when a secret was told meanwhile",
        "field/writer.py",
        "each.cleaned.by is harness",
        "each.cleaned.by is not None",
        (
            "tests/compaction/test_archiving.py::"
            "test_a_secret_that_is_told_while_a_synthesis_waits_for_its_turn_is_taken_out_of_it",
        ),
    ),
    Mutation(
        "writer-on-the-spot",
        "the cleaning of usual requests",
        "field/writer.py",
        "clean = harness.clean_if_nothing_is_found(dirty)",
        "clean = [CleanGroup(texts, ()) for texts in dirty]",
        (NO_TEXT_FIELD,),
    ),
    Mutation(
        "writer-in-a-thread",
        "the cleaning of much text",
        "field/writer.py",
        "return await asyncio.to_thread(harness.clean_groups, dirty)",
        "return [CleanGroup(texts, ()) for texts in dirty]",
        (f"{SCRUBBING}::test_a_secret_in_more_text_than_is_scanned_on_the_spot_is_taken_out",),
    ),
    Mutation(
        "writer-altered-names",
        "the refusal of ids that would have to be rewritten",
        "field/writer.py",
        "                _refuse_altered_names(work, clean)\n",
        "                pass\n",
        (NO_ID,),
    ),
    Mutation(
        "writer-policy",
        "the policy to refuse texts that hold a secret",
        "field/writer.py",
        "self._refuse_secrets and ",
        "False and ",
        (f"{SCRUBBING}::test_a_field_that_refuses_secrets_refuses_and_keeps_nothing",),
    ),
    Mutation(
        "writer-warning",
        "the warning that a text was redacted",
        "field/writer.py",
        "reply = _with_redaction_warning(reply, clean.found)",
        "pass",
        (f"{REDACTION}::test_every_write_that_was_redacted_says_so",),
    ),
    Mutation(
        "writer-trails",
        "the search for secrets that are split over entries",
        "field/writer.py",
        "clean, trails = await self._trails.follow(harness, work.message, texts, clean)",
        "pass",
        (OVER_ENTRIES,),
    ),
    Mutation(
        "writer-trails-kept",
        "the memory of what was said in the entry before",
        "field/writer.py",
        "        self._trails.keep(trails)\n",
        "",
        (f"{SCRUBBING}::test_of_a_secret_split_over_a_reason_and_a_unit_the_later_part_is_taken_out",),
    ),
    Mutation(
        "trails-follow",
        "the cleaning of a text of what goes on from the entry before",
        "field/trails.py",
        "group, after = harness.follow(trails, texts, group)",
        "_, after = harness.follow(trails, texts, group)",
        (OVER_ENTRIES,),
    ),
    Mutation(
        "trails-of-sessions",
        "the memory of what others said in the session",
        "field/trails.py",
        '[("agent", message.agent_id), *session]',
        '[("agent", message.agent_id)]',
        (f"{SPLIT}::test_of_a_secret_split_over_agents_of_a_session_the_later_part_is_taken_out",),
    ),
    Mutation(
        "trails-read-back",
        "the memory of what was said before a restart",
        "field/trails.py",
        "_, [trail] = harness.follow([trail], texts, CleanGroup(texts, ()))",
        "pass",
        (OVER_A_RESTART,),
    ),
    Mutation(
        "cleaning-known",
        "the secrets that a tenant has registered",
        "field/cleaning.py",
        "await asyncio.to_thread(base.knowing, known) if known else base",
        "base",
        (f"{SWEEP}::test_a_sweep_clears_a_late_secret_from_everything_that_is_told",),
    ),
    Mutation(
        "cleaning-known-for-the-log",
        "the secrets that a tenant has registered, for the log",
        "field/cleaning.py",
        "self._loading.result().knowing(known)",
        "self._loading.result()",
        (f"{SERVER}::test_no_log_line_holds_a_secret_of_an_open_field",),
    ),
    Mutation(
        "cleaning-scrub",
        "the scrubbing of log lines",
        "field/cleaning.py",
        ".clean_one(text).text",
        ".clean_one(text)._replace(text=text).text",
        (f"{SERVER}::test_no_log_line_holds_a_secret_of_an_open_field",),
    ),
)

IN_HARNESS: Final = (
    Mutation(
        "harness-groups",
        "the cleaning of a group in which something was found",
        "redact/harness.py",
        "answers[index] = self._clean_group(groups[index])",
        "pass",
        (f"{HARNESS}::test_more_texts_than_one_scan_takes_are_all_cleaned",),
    ),
    Mutation(
        "harness-text",
        "the cleaning of a text in which something was found",
        "redact/harness.py",
        "self._clean(text, found) if index in suspects else CleanText(text)",
        "CleanText(text)",
        (f"{HARNESS}::test_more_texts_than_one_scan_takes_are_all_cleaned",),
    ),
    Mutation(
        "harness-one",
        "the cleaning of one text by itself",
        "redact/harness.py",
        "[group] = self.clean_groups([[text]])",
        "group = CleanGroup([CleanText(text)], ())",
        ("tests/redact/test_patterns.py::test_a_private_key_of_any_size_is_taken_out_whole",),
    ),
    Mutation(
        "harness-after",
        "the cleaning of a text that comes after others",
        "redact/harness.py",
        "[group] = self.clean_groups([texts])",
        "group = CleanGroup([CleanText(text) for text in texts], ())",
        ("tests/redact/test_after.py::test_a_text_that_comes_after_others_is_cleaned_as_it_is_alone",),
    ),
    Mutation(
        "harness-after-trail",
        "the cleaning of a text of what goes on from the ones before",
        "redact/harness.py",
        "group, [trail] = self.follow([trail], texts, group)",
        "_, [trail] = self.follow([trail], texts, group)",
        (f"{FORMS}::test_a_secret_split_over_consecutive_entries_is_taken_out_of_the_later_one",),
    ),
    Mutation(
        "harness-follow",
        "the taking out of parts of secrets that go on from one entry to the next",
        "redact/harness.py",
        "self._without_parts(trails, texts, group) if self._known else (group, list(trails))",
        "(group, list(trails))",
        (OVER_ENTRIES,),
    ),
    Mutation(
        "harness-parts",
        "the taking out of parts of secrets that are split over the texts of a unit",
        "redact/harness.py",
        "return self._without_parts([], group, CleanGroup(texts, tuple(found)))[0]",
        "return CleanGroup(texts, tuple(found))",
        (f"{FORMS}::test_a_secret_split_over_two_texts_of_a_unit_is_taken_out",),
    ),
    Mutation(
        "harness-parts-rewritten",
        "the rewriting of parts of secrets",
        "redact/harness.py",
        "_rewritten(text, secrets).decode()",
        "text.decode()",
        (f"{FORMS}::test_a_secret_split_over_two_texts_of_a_unit_is_taken_out",),
    ),
    Mutation(
        "harness-rewritten",
        "the rewriting of a text",
        "redact/harness.py",
        "data = _rewritten(data, secrets)",
        "return CleanText(text)",
        (f"{HARNESS}::test_more_texts_than_one_scan_takes_are_all_cleaned",),
    ),
    Mutation(
        "harness-ids",
        "the search for secrets in ids",
        "redact/harness.py",
        "self._offence(value) if index in suspects else None",
        "None",
        (f"{HARNESS}::test_an_id_that_holds_a_secret_is_named_with_its_rule_and_the_others_are_not",),
    ),
    Mutation(
        "harness-foreign-markers",
        "the rewriting of markers of another form",
        "redact/harness.py",
        "            data = canonical(data)\n",
        "",
        (f"{MARKERS}::test_a_marker_of_another_form_becomes_ours_with_its_name",),
    ),
    Mutation(
        "harness-marker-names",
        "the search for secrets in the names of markers",
        "redact/harness.py",
        "        for index in suspects:\n            if inside",
        "        for index in ():\n            if inside",
        (f"{KNOWN}::test_the_name_of_a_foreign_marker_may_hold_a_secret_too",),
    ),
    Mutation(
        "harness-patterns",
        "the secrets that are known by their shape",
        "redact/harness.py",
        "(Patterns(), PrivateKeys())",
        "(PrivateKeys(),)",
        (NO_TEXT_FIELD,),
    ),
    Mutation(
        "harness-private-keys",
        "the private keys",
        "redact/harness.py",
        "(Patterns(), PrivateKeys())",
        "(Patterns(),)",
        ("tests/redact/test_patterns.py::test_a_private_key_of_any_size_is_taken_out_whole",),
    ),
    Mutation(
        "harness-known",
        "the secrets whose values are known",
        "redact/harness.py",
        "(*rules, self._known) if self._known else rules",
        "rules",
        (f"{FORMS}::test_a_known_secret_is_taken_out_in_every_form",),
    ),
)

MUTATIONS: Final = (
    *REGISTER,
    *RECORD,
    *OTHER_OPERATIONS,
    *COMPACTION,
    *IDS,
    *SWEEPING,
    *IMPORT,
    *LEAVING,
    *WRITER,
    *IN_HARNESS,
    *MEMORIES,
    *PLANES,
)
