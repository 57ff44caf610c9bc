"""The part of the list that is about OpenWOP memories: entries that are put, distilled, consolidated and deleted."""

from typing import Final

from tests.mutate.mutation import Mutation

MEMORY: Final = "tests/protocol/test_memory_secrets.py"
CONTENT_AND_TAGS: Final = f"{MEMORY}::test_an_entrys_content_and_tags_are_kept_without_their_secrets"
NO_ENTRY_ID: Final = f"{MEMORY}::test_an_id_of_an_entry_that_holds_a_secret_is_refused_and_nothing_is_kept"
OWN_WORDS: Final = f"{MEMORY}::test_not_even_the_hosts_own_words_go_past_the_harness"
GETS_TAGS: Final = f"{MEMORY}::test_an_entry_that_gets_the_tags_of_another_is_kept_without_a_late_secret"


def _unnamed(kind: str, text: str) -> Mutation:
    """An id of an entry is not among the names that are checked."""
    return Mutation(
        f"entry-{kind}",
        f"the refusal of a secret in place of the {kind} id of an entry",
        "field/putting.py",
        f'("{kind}", {text})',
        f'("{kind}", None)',
        (NO_ENTRY_ID,),
    )


PUTTING: Final = (
    Mutation(
        "entry-content",
        "the cleaning of an entry's content",
        "field/putting.py",
        "UnitTexts(content=content,",
        "UnitTexts(content=entry.content,",
        (CONTENT_AND_TAGS,),
    ),
    Mutation(
        "entry-purpose",
        "the cleaning of an entry's purpose",
        "field/putting.py",
        " purpose=purpose,",
        " purpose=PURPOSE,",
        (OWN_WORDS,),
    ),
    Mutation(
        "entry-reasoning",
        "the cleaning of an entry's reasoning",
        "field/putting.py",
        " reasoning=reasoning)",
        " reasoning=REASONING)",
        (OWN_WORDS,),
    ),
    Mutation(  # with the ids beside them: a clean one is the given one, since others are refused
        "entry-tags",
        "the cleaning of an entry's tags",
        "field/putting.py",
        'names.get("entry"), tuple(dict.fromkeys(tags)), names.get("node"), names.get("agent")',
        'names.get("entry"), tuple(dict.fromkeys(entry.tags)), names.get("node"), names.get("agent")',
        (CONTENT_AND_TAGS,),
    ),
    _unnamed("entry", "self.id"),
    _unnamed("node", "self.node_id"),
    _unnamed("agent", "self.agent_id"),
    Mutation(
        "memory-ref",
        "the refusal of a secret in place of a memory's ref",
        "field/putting.py",
        '("session", self._session)',
        '("session", "unchecked")',
        (NO_ENTRY_ID,),
    ),
    Mutation(
        "memory-trail",
        "the search for secrets that are split over the entries of a memory",
        "field/putting.py",
        "record, session_of(memory), caller=caller)",
        "record, None, caller=caller)",
        (f"{MEMORY}::test_of_a_secret_split_over_entries_of_two_hosts_the_later_part_is_taken_out",),
    ),
)

DISTILLATION: Final = (
    Mutation(
        "distillation-sources",
        "the cleaning of sources before anything is made from them",
        "field/condensing.py",
        "await asyncio.to_thread(harness.clean_groups, [[source.content] for source in sources])",
        "[type(each)([source.content], ()) for source in sources for each in harness.clean_groups([[]])]",
        (f"{MEMORY}::test_of_a_secret_in_a_source_no_part_gets_into_what_is_distilled",),
    ),
    Mutation(
        "distillation-content",
        "the cleaning of what a distillation says",
        "field/distillation.py",
        "content=content,",
        "content=self._distillate.text,",
        (f"{MEMORY}::test_a_distillation_does_not_quote_a_secret_that_became_known_late",),
    ),
    Mutation(
        "distillation-purpose",
        "the cleaning of a distillation's purpose",
        "field/distillation.py",
        "purpose=purpose,",
        "purpose=self.texts()[1],",
        (OWN_WORDS,),
    ),
    Mutation(
        "distillation-reasoning",
        "the cleaning of a distillation's reasoning",
        "field/distillation.py",
        "reasoning=reasoning,",
        "reasoning=self.texts()[2],",
        (OWN_WORDS,),
    ),
    Mutation(
        "distillation-tag",
        "the cleaning of a distillation's tags",
        "field/distillation.py",
        "EntryTexts(tags=tuple(dict.fromkeys(tags)))",
        "EntryTexts(tags=tuple(self.texts()[3 : 3 + len(tags)]))",
        (OWN_WORDS,),
    ),
    Mutation(
        "distillation-reason",
        "the cleaning of a distillation's reason",
        "field/distillation.py",
        "ReasonText(why)",
        "ReasonText(WHY)",
        (OWN_WORDS,),
    ),
)

DELETION: Final = (
    Mutation(
        "synthesis-tags",
        "the cleaning of the tags of what is made from entries",
        "field/synthesis.py",
        "EntryTexts(tags=tuple(dict.fromkeys(tags)))",
        "EntryTexts(tags=tuple(list(self.texts())[5 : 5 + len(tags)]))",
        (f"{MEMORY}::test_tags_of_what_is_made_from_entries_lose_a_late_secret",),
    ),
    Mutation(
        "deletion-reason",
        "the cleaning of a deletion's reason",
        "field/purging.py",
        "ReasonText(next(rest))",
        "ReasonText((next(rest), self._why)[1])",
        (OWN_WORDS,),
    ),
)


CONSOLIDATION: Final = (
    Mutation(
        "consolidation-texts",
        "the cleaning of the texts of an entry that gets the tags of another",
        "field/consolidating.py",
        "with_strings(texts, rest) for",
        "(with_strings(texts, rest), texts)[1] for",
        (GETS_TAGS,),
    ),
    Mutation(
        "consolidation-joined",
        "the cleaning of the tags that an entry gets",
        "field/consolidating.py",
        "list(islice(rest, len(each.tags)))",
        "(list(islice(rest, len(each.tags))), list(each.tags))[1]",
        (f"{MEMORY}::test_tags_that_go_to_another_entry_lose_a_late_secret",),
    ),
)

REQUOTING: Final = (
    Mutation(
        "requoted-texts",
        "the cleaning of a synthesis that is made anew without what was taken back",
        "field/requoting.py",
        "await self._anew.rows(desk), clean)",
        "await self._anew.rows(desk), self.texts())",
        (f"{MEMORY}::test_what_stands_for_entries_is_made_anew_without_a_late_secret",),
    ),
    Mutation(
        "requoted-reason",
        "the cleaning of the reason why a synthesis is taken back",
        "field/requoting.py",
        "ReasonText(why)",
        "ReasonText(WHY)",
        (f"{MEMORY}::test_the_reason_why_nothing_stands_for_entries_any_more_is_kept_without_a_secret",),
    ),
)

MEMORIES: Final = (*PUTTING, *DISTILLATION, *DELETION, *CONSOLIDATION, *REQUOTING)
