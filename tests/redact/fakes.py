"""Secrets that nobody ever had, put together at run time so that no file holds anything that looks like one."""

import random
import string
from typing import Final

ALNUM: Final = string.ascii_letters + string.digits
DIGITS: Final = string.digits
HEX: Final = "0123456789abcdef"
UPPER: Final = string.ascii_uppercase
BASE32: Final = string.ascii_uppercase + "234567"

_chance: Final = random.Random("fieldstone")


def noise(length: int, alphabet: str = ALNUM) -> str:
    return "".join(_chance.choice(alphabet) for _ in range(length))


# Kinds that are known by their own shape, with nothing said about them.
TOKENS: Final = {
    "AWS access key": "AKIA" + noise(16, BASE32),
    "AWS temporary access key": "ASIA" + noise(16, BASE32),
    "GitHub personal": "ghp" + "_" + noise(36),
    "GitHub server": "ghs" + "_" + noise(36),
    "GitHub fine-grained": "github" + "_pat_" + noise(22) + "_" + noise(59),
    "GitLab": "glpat" + "-" + noise(20),
    "OpenAI old": "sk" + "-" + noise(48),
    "OpenAI project": "sk" + "-proj-" + noise(74) + "T3Blbk" + "FJ" + noise(74),
    "Anthropic": "sk" + "-ant-api03-" + noise(93) + "AA",
    "OpenRouter": "sk" + "-or-v1-" + noise(64, HEX),
    "Google": "AIza" + noise(35),
    "Slack bot": "xoxb" + f"-{noise(12, DIGITS)}-{noise(13, DIGITS)}-{noise(24)}",
    "Slack user": "xoxp" + f"-{noise(11, DIGITS)}-{noise(11, DIGITS)}-{noise(12, DIGITS)}-{noise(32, HEX)}",
    "Slack app": "xapp" + f"-1-A{noise(10, UPPER)}-{noise(13, DIGITS)}-{noise(64, HEX)}",
    "Stripe": "sk" + "_live_" + noise(24),
    "SendGrid": "SG" + f".{noise(22)}.{noise(43)}",
    "Vault": "hvs" + "." + noise(95),
    "npm": "npm" + "_" + noise(36),
    "PyPI": "pypi" + "-AgEIcHlwaS5vcmc" + noise(80),
    "Hugging Face": "hf" + "_" + noise(34, string.ascii_letters),
    "Telegram": noise(9, "123456789") + ":AA" + noise(33),
    "Mailgun": "key" + "-" + noise(32, HEX),
    "JWT": f"ey{'J'}{noise(20)}.ey{'J'}{noise(40)}.{noise(43)}",
    "JWT without signature": f"ey{'J'}{noise(20)}.ey{'J'}{noise(40)}.",
}


def private_key(label: str = "RSA PRIVATE KEY", lines: int = 20) -> str:
    body = "\n".join(noise(64, ALNUM + "+/") for _ in range(lines))
    return f"-----{'BEGIN'} {label}-----\n{body}\n-----{'END'} {label}-----"
