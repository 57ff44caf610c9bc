"""The tree keeps the rules of tests/house/rules.py, and every rule can fail."""

import pytest

from tests.house import rules
from tests.house.rules import Rule
from tests.house.sources import Source, all_sources, python_sources


@pytest.mark.parametrize("rule", rules.OF_PYTHON, ids=lambda rule: rule.__name__)
def test_python_sources_keep_the_rule(rule: Rule) -> None:
    problems = [problem for source in python_sources() for problem in rule(source)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("rule", rules.OF_EVERY_FILE, ids=lambda rule: rule.__name__)
def test_all_committed_files_keep_the_rule(rule: Rule) -> None:
    problems = [problem for source in all_sources() for problem in rule(source)]
    assert not problems, "\n".join(problems)


CORE = "src/fieldstone/core/rule.py"
FIELD = "src/fieldstone/field/record.py"
TEST = "tests/field/test_record.py"

LATE_IMPORT = "def f():\n    import json\n"
LATE_IMPORT_IN_CLASS = "class A:\n    async def f(self):\n        from json import dumps\n"
SWALLOW = "try:\n    f()\nexcept {}:\n    pass\n"
LONG_FUNCTION = "def f():\n" + "    g()\n" * rules.FUNCTION_LINES_MAX
# In pieces: this file is read by the same rules.
HOME = "/" + "root/project"
INDEX = "https://pypi" + ".org/simple"

BROKEN: list[tuple[Rule, str, str]] = [
    (rules.vague_module_name, "src/fieldstone/core/utils.py", ""),
    (rules.vague_module_name, "src/fieldstone/helpers/text.py", ""),
    (rules.import_inside_function, FIELD, LATE_IMPORT),
    (rules.import_inside_function, FIELD, LATE_IMPORT_IN_CLASS),
    (rules.broad_except, FIELD, SWALLOW.format("Exception")),
    (rules.broad_except, FIELD, SWALLOW.format("BaseException as error")),
    (rules.broad_except, FIELD, SWALLOW.format("(ValueError, Exception)")),
    (rules.broad_except, FIELD, SWALLOW.replace(" {}", "")),
    (rules.broad_except, FIELD, "with contextlib.suppress(Exception):\n    f()\n"),
    (rules.impure_core, CORE, "import time\n"),
    (rules.impure_core, CORE, "from random import choice\n"),
    (rules.impure_core, CORE, "import uuid\n"),
    (rules.impure_core, CORE, "import secrets\n"),
    (rules.impure_core, CORE, "from os import urandom\n"),
    (rules.impure_core, CORE, "import asyncio\n"),
    (rules.impure_core, CORE, "from pathlib import Path\n"),
    (rules.impure_core, CORE, "import apsw\n"),
    (rules.impure_core, CORE, "from uuid_utils import uuid7\n"),
    (rules.impure_core, CORE, "from datetime import datetime\nx = datetime.now()\n"),
    (rules.impure_core, CORE, "import datetime as dt\nx = dt.datetime.now(dt.UTC)\n"),
    (rules.impure_core, CORE, "from datetime import date as day\nx = day.today()\n"),
    (rules.impure_core, CORE, "x = open('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = CleanText('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = text.CleanText('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = cast(CleanText, 'a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = typing.cast('CleanText', 'a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = cast(Sequence[CleanText], given)\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = cast('Sequence[CleanText]', given)\n"),
    (rules.clean_text_made_elsewhere, FIELD, "from fieldstone.core.text import CleanText as Text\nx = Text('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "Text = CleanText\nx = Text('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = list(map(CleanText, given))\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = getattr(text, 'CleanText')('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = msgspec.convert(given, CleanText)\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = json.decode(body, type=UnitTexts)\n"),
    (rules.clean_text_made_elsewhere, FIELD, "x = msgspec.convert(given, dict[str, ReasonText])\n"),
    (rules.clean_text_made_elsewhere, FIELD, "decoder = json.Decoder(HintText)\n"),
    (rules.clean_text_made_elsewhere, "src/fieldstone/redact/road.py", "x = CleanText('a')\n"),
    (rules.scanner_that_calls_out, FIELD, "import kingfisher_sdk.validation\n"),
    (rules.scanner_that_calls_out, FIELD, "from kingfisher_sdk.revocation import plan\n"),
    (rules.scanner_that_calls_out, FIELD, "from kingfisher_sdk import Scanner, Revoker\n"),
    (rules.scanner_that_calls_out, FIELD, "from kingfisher_sdk import *\n"),
    (rules.scanner_that_calls_out, TEST, "import kingfisher_sdk as k\nk.Validator()\n"),
    (rules.scanner_that_calls_out, FIELD, "import_module('kingfisher_sdk.validation')\n"),
    (rules.too_long, FIELD, "x = 1\n" * (rules.FILE_LINES_MAX + 1)),
    (rules.too_long, FIELD, LONG_FUNCTION),
    (rules.skipped_test, TEST, "@pytest.mark.skip\ndef test_a(): ...\n"),
    (rules.skipped_test, TEST, "@pytest.mark.skipif(True, reason='')\ndef test_a(): ...\n"),
    (rules.skipped_test, TEST, "@pytest.mark.xfail(strict=True)\ndef test_a(): ...\n"),
    (rules.skipped_test, TEST, "def test_a():\n    pytest.skip('later')\n"),
    (rules.skipped_test, TEST, "apsw = pytest.importorskip('apsw')\n"),
    (rules.skipped_test, TEST, "from pytest import skip\n"),
    (rules.skipped_test, TEST, "from unittest import skipIf\n"),
    (rules.machine_path, "README.md", f"cd {HOME}\n"),
    (rules.machine_path, "Makefile", f"DB={HOME}\n"),
    (rules.registry_address, "requirements/base.txt", f"--index-{'url'} {INDEX}\n"),
    (rules.registry_address, "README.md", f"see {INDEX}\n"),
    (rules.registry_address, "Makefile", "pip install https://example.com/a-1.0-py3-none-any" + ".whl\n"),
    (rules.registry_address, "uv.lock", ""),
]


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_rule_finds_what_breaks_it(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


KEPT: list[tuple[Rule, str, str]] = [
    (rules.import_inside_function, "src/fieldstone/wiring/fields.py", LATE_IMPORT),
    (rules.import_inside_function, "src/fieldstone/__init__.py", LATE_IMPORT),
    (rules.import_inside_function, FIELD, "import json\nif TYPE_CHECKING:\n    import re\n"),
    (rules.broad_except, FIELD, SWALLOW.format("Exception").replace("Exception:", "Exception:  # why: the loop lives")),
    (rules.broad_except, FIELD, SWALLOW.format("(ValueError, KeyError)")),
    (
        rules.impure_core,
        CORE,
        "import re\nfrom datetime import datetime\nimport msgspec\nfrom fieldstone.core import x\n",
    ),
    (rules.impure_core, CORE, "def f(clock):\n    return clock.now()\n"),
    (rules.impure_core, FIELD, "import time\n"),
    (rules.clean_text_made_elsewhere, "src/fieldstone/redact/harness.py", "x = CleanText('a')\n"),
    (rules.clean_text_made_elsewhere, FIELD, "def f(x: CleanText) -> Sequence[CleanText]: return [x]\n"),
    (
        rules.clean_text_made_elsewhere,
        FIELD,
        "from fieldstone.core.text import CleanText\nx: CleanText | None = None\n",
    ),
    (rules.clean_text_made_elsewhere, FIELD, "x = decode_texts(stored.body, UnitTexts)\n"),
    (rules.scanner_that_calls_out, FIELD, "from kingfisher_sdk import Rules, Scanner\nScanner().scan('a')\n"),
    (rules.too_long, FIELD, LONG_FUNCTION.removesuffix("    g()\n")),
    (rules.skipped_test, TEST, "def test_a(reader):\n    reader.skip(3)\n"),
    (rules.machine_path, "README.md", "GET /v1/home/ and example.com/work/ and ./root/\n"),
    (rules.registry_address, "Makefile", "uv pip compile --no-emit-index-url --no-emit-find-links\n"),
    (rules.registry_address, "README.md", "https://keepachangelog.com\n"),
]


@pytest.mark.parametrize(("rule", "path", "text"), KEPT)
def test_a_rule_leaves_alone_what_keeps_it(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_the_rules_are_given_the_tree() -> None:
    here = "tests/house/test_tidy.py"
    assert here in {source.path for source in python_sources()}
    assert {here, "Makefile"} <= {source.path for source in all_sources()}


def test_the_rule_about_clean_text_knows_the_bundles_of_texts() -> None:
    assert {"TextBundle", "NameText", "UnitTexts", "HintText"} <= rules.text_bundles()


def test_every_rule_is_shown_to_fail() -> None:
    assert {rule for rule, _, _ in BROKEN} == {*rules.OF_PYTHON, *rules.OF_EVERY_FILE}
