"""Values that look like keys and carry a mark: whoever sees the mark has seen a leak.

They are put together here, so that no text in the tree looks like a key.
"""

from typing import Final

MARK: Final = "CANARY-openwop" + "-CONFORMANCE-NEVER-SECRET"

CANARIES: Final = {
    "openai": "sk" + f"-{MARK}-" + "oaiA1b2C3d4E5f6G7h8I9j0K",
    "anthropic": "sk" + "-ant" + f"-{MARK}-" + "antA1b2C3d4E5f6G7h8I9j",
    "google": "AI" + "za" + MARK + "GoogA1b2C3d4E5f6",
    "jwt": ".".join(("ey" + "JhbGciOiJub25lIn0", "ey" + "JjYW5hcnkiOjF9", f"{MARK}-signature-abc")),
    "credential": "cred" + f"_{MARK}-" + "OpaqueA1B2C3D4",
    "bare": f"{MARK}-alone",
}


def assert_no_canary(text: str | bytes) -> None:
    told = text if isinstance(text, str) else text.decode("utf-8", "replace")
    assert MARK.lower() not in told.lower()
