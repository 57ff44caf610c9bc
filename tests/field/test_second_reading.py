"""What a model is asked, and what its word is worth."""

from hypothesis import given
from hypothesis import strategies as st

from fieldstone.detection.judge import Claim, Verdict
from fieldstone.field.second_reading import FOUND, MOST_ACCUSED, MOST_NEAR, NEAR, SecondReading
from tests.scripted import ScriptedJudge

NEWER = Claim("The newer one.", "finding", 9, 0.9)
VERDICT = Verdict("temporal", 0.7, "Different numbers.")

verdicts_of = st.dictionaries(
    st.integers(1, 40),
    st.none() | st.builds(VERDICT._replace, strength=st.floats(0.1, 1)),
    max_size=30,
)


def older(units: dict[int, Verdict | None]) -> dict[int, Claim]:
    return {unit: Claim(f"Unit {unit}.", "finding", 1, 0.9) for unit in units}


@given(verdicts_of, st.dictionaries(st.integers(1, 40), st.floats(0, 1)), st.sampled_from([True, False, None]))
async def test_a_judge_is_asked_a_bounded_number_of_times_and_decides_only_what_it_was_asked(
    verdicts: dict[int, Verdict | None], similar: dict[int, float], word: bool | None
) -> None:
    judge = ScriptedJudge(word)
    read = await SecondReading(judge).read(NEWER, older(verdicts), verdicts, similar)
    assert len(judge.asked) <= MOST_ACCUSED + MOST_NEAR
    assert len(set(judge.asked)) == len(judge.asked)
    assert read.keys() == verdicts.keys()
    asked = {unit for unit in verdicts if (NEWER.text, f"Unit {unit}.") in judge.asked}
    for unit, verdict in verdicts.items():
        if unit not in asked or word is None:
            assert read[unit] == verdict
        else:
            assert read[unit] == ((verdict or FOUND) if word else None)
        if unit in asked and verdict is None:
            assert similar[unit] >= NEAR


async def test_a_judge_is_asked_about_the_nearest_first() -> None:
    units: dict[int, Verdict | None] = dict.fromkeys(range(1, 11))
    judge = ScriptedJudge(True)
    await SecondReading(judge).read(NEWER, older(units), units, {unit: 0.6 + unit / 100 for unit in units})
    assert [text for _, text in judge.asked] == ["Unit 10.", "Unit 9.", "Unit 8.", "Unit 7."]


async def test_a_question_claims_nothing_so_nobody_is_asked_about_it() -> None:
    units: dict[int, Verdict | None] = {1: None, 2: None}
    near = {1: 0.9, 2: 0.9}
    judge = ScriptedJudge(True)
    asks = NEWER._replace(type="question")
    assert await SecondReading(judge).read(asks, older(units), units, near) == units
    claims = older(units) | {1: asks}
    await SecondReading(judge).read(NEWER, claims, units, near)
    assert judge.asked == [(NEWER.text, "Unit 2.")]
