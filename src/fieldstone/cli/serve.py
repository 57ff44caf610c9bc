"""`fieldstone serve`"""

from pathlib import Path

import click

from fieldstone import wiring
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import config_option, json_option, setting_option
from fieldstone.settings import load_settings


@click.command("serve")
@setting_option("db", metavar="PATH")
@setting_option("host", metavar="ADDRESS")
@setting_option("port", type=int)
@setting_option("tls_cert", metavar="FILE")
@setting_option("tls_key", metavar="FILE")
@setting_option("field", metavar="NAME")
@setting_option("max_bytes", type=int, metavar="BYTES")
@setting_option("log_level", metavar="LEVEL")
@setting_option("log_format", metavar="FORMAT")
@click.option("--conformance", is_flag=True, help="With the seams and fixtures of OpenWOP's own test suite.")
@config_option
@json_option
def command(config: Path | None, as_json: bool, conformance: bool, **given: str | int | None) -> None:
    """Serve a field over HTTP.

    Until Ctrl-C; what was accepted is finished first.

    \b
    Examples:
      fieldstone serve                              fieldstone.db at http://127.0.0.1:8420
      fieldstone serve --db team.db --port 9000
      fieldstone serve --db memory:                 nothing is kept
      fieldstone serve --config fieldstone.toml --max-bytes 2000000000
      fieldstone serve --port 0 --json              a line of JSON says where, once it is ready
    """
    settings = load_settings(config=config, given=given).values
    if wiring.is_url(settings.db):
        raise Refused("error: A server needs a store, not another server's URL: give --db a path, or memory:.")
    wiring.serve(settings, conformance=conformance, as_json=as_json)
