"""A file of iperf3 as people have it: several tests, and what loggers, scripts and iperf3 itself put around them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tool_outputs import read

from measuretwice.parse import Iperf3Run, parse_iperf3_json, parse_iperf3_text
from measuretwice.parse.formats import format_of, plain
from measuretwice.parse.wrapping import (
    complaints,
    is_server,
    json_tests,
    text_tests,
    turned_round,
)

DOCUMENT = read("iperf3/iperf3-3.18-one-flow.json")
TEXT = read("iperf3/iperf3-3.9-one-flow.txt")
REVERSE = read("iperf3/iperf3-3.18-reverse.json")
REVERSE_TEXT = read("iperf3/iperf3-3.18-reverse.txt")


def prefixed(text: str, *prefixes: str) -> str:
    """The lines of a text, each with the next of these prefixes before it."""
    lines = text.splitlines()
    return "".join(f"{prefixes[i % len(prefixes)]}{line}\n" for i, line in enumerate(lines))


def ansible(text: str, name: str = "stdout") -> str:
    result = {"changed": True, "cmd": ["iperf3"], name: text, "rc": 0}
    return "TASK [debug] ***\nok: [sender] => " + json.dumps(result, indent=4)


WRAPPED = {
    "kubectl --prefix": lambda text: prefixed(text, "[pod/iperf3-client-7f9c4/iperf3] "),
    "kubectl --timestamps": lambda text: prefixed(text, "2024-11-15T19:46:40.123456789Z ", "2024-11-15T19:46:41.0Z "),
    "docker compose": lambda text: prefixed(text, "iperf3-client-1  | "),
    "journald": lambda text: "-- Logs begin at Fri 2024-11-15. --\n" + prefixed(text, "Nov  5 19:46:40 sender iperf3[812]: ", "Nov 15 19:46:41 sender iperf3[812]: "),
    "ts": lambda text: prefixed(text, "Nov 15 19:46:40 "),
    "--timestamps": lambda text: prefixed(text, "Fri Nov 15 19:46:40 2024 "),
    "a quotation": lambda text: prefixed(text, "> "),
    "docker's file": lambda text: "".join(json.dumps({"log": line + "\n", "stream": "stdout", "time": "2024"}) + "\n" for line in text.splitlines()),
    "journald's JSON": lambda text: "".join(json.dumps({"MESSAGE": line, "_PID": "1"}) + "\n" for line in text.splitlines()),
    "Ansible's stdout": ansible,
    "Ansible's variable": lambda text: ansible(text, "outcome.stdout"),
    "Ansible's lines": lambda text: ansible(text.splitlines(), "stdout_lines"),
    "Ansible ad hoc": lambda text: "sender | CHANGED | rc=0 >>\n" + text,
    "a terminal": lambda text: "user@host:~$ iperf3 -c 10.0.0.2\n" + text + "user@host:~$ exit\n",
}  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("text", [DOCUMENT, TEXT], ids=["json", "text"])
def test_what_a_logger_puts_around_is_taken_away(wrapper: str, text: str) -> None:
    found = plain(WRAPPED[wrapper](text))
    known = format_of(found, "a file")
    (test,) = known.tests(found)
    assert (known.tool, known.parse(test, "a file")) == (
        "iperf3",
        format_of(text, "a file").parse(text, "a file"),
    )


def test_a_log_without_anything_around_stays_as_it_is() -> None:
    for text in (
        DOCUMENT,
        TEXT,
        read("ping/derived-ping6-freebsd-dup.txt"),
        read("ss/samples-6.1.txt"),
    ):
        assert plain(text) == text


def rates(text: str, tests: list[str]) -> list[float | None]:
    known = format_of(text, "a file")
    runs = [known.parse(test, "a file") for test in tests]
    return [run.received_rate_bps for run in runs if isinstance(run, Iperf3Run)]


def again(text: str) -> str:
    """Another test of the same form, with other ports and other rates."""
    return text.replace("5201", "5202").replace('"bits_per_second":\t', '"bits_per_second":\t1')


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (DOCUMENT + DOCUMENT, 1),
        (DOCUMENT + again(DOCUMENT), 2),
        (DOCUMENT.strip() + again(DOCUMENT).strip() + "\nreal 0m10.1s\n", 2),
        ("warning: this\n" + DOCUMENT + "iperf3: error - unable to send control message\n", 1),
        (json.dumps([json.loads(DOCUMENT), json.loads(again(DOCUMENT))]), 2),
        (json.dumps({"first": json.loads(DOCUMENT)}), 1),
    ],
)
def test_each_document_of_a_file_is_a_test(text: str, count: int) -> None:
    assert len(rates(text, json_tests(text))) == count
    assert (
        rates(text, json_tests(text))[0] == parse_iperf3_json(DOCUMENT, "a file").received_rate_bps
    )


def test_a_stream_of_two_tests_is_two() -> None:
    text = read("iperf3/iperf3-3.22-json-stream.json")
    assert len(json_tests(text + again(text))) == 2
    assert len(json_tests("warning\n" + text.replace("\n", "\nnoise\n", 1))) == 1


def test_a_document_cut_off_leaves_the_next_one_whole() -> None:
    broken, whole = json_tests(DOCUMENT[: len(DOCUMENT) // 2] + "\n" + again(DOCUMENT))
    assert rates(whole, [whole])
    with pytest.raises(ValueError, match="cut off"):
        parse_iperf3_json(broken, "a file")


def test_each_test_in_a_text_is_one() -> None:
    text = "iperf3: error - unable to connect to server\n" + TEXT + again(TEXT) + TEXT
    tests = text_tests(text)
    runs = [parse_iperf3_text(test, "a file") for test in tests]
    assert [run.connections[0].remote_port for run in runs[:2]] == [5201, 5202]
    assert {run.error for run in runs} == {None}
    assert complaints(text) == ["unable to connect to server"]


@pytest.mark.parametrize(
    ("text", "server"),
    [
        (TEXT, False),
        (read("iperf3/iperf3-3.12-server-several.txt"), True),
        (TEXT.replace("iperf Done.", "Server output:\n---\nServer listening on 5201\n\niperf Done."), False),
        ("warning: no IPv6\nAccepted connection from 10.0.0.1, port 1\n", True),
    ],
)  # fmt: skip
def test_whose_text_it_is_its_beginning_says(text: str, server: bool) -> None:
    assert is_server(text) is server


def test_what_the_server_printed_isnt_counted_again() -> None:
    rows = "\n".join(line for line in TEXT.splitlines() if "]" in line)
    (test,) = text_tests(TEXT.replace("iperf Done.", f"Server output:\n{rows}\n\niperf Done."))
    assert parse_iperf3_text(test, "a file") == parse_iperf3_text(TEXT, "a file")


@pytest.mark.parametrize("text", [REVERSE, REVERSE_TEXT], ids=["json", "text"])
def test_a_test_in_which_the_server_sent_is_turned_round(text: str) -> None:
    parse: Any = parse_iperf3_json if text.startswith("{") else parse_iperf3_text
    before, after = parse(text, "a file"), parse(turned_round(text), "a file")
    assert (before.reverse, after.reverse) == (True, False)
    assert after.connections[0].local_port == before.connections[0].remote_port == 5201
    assert after.connections[0].remote_host == before.connections[0].local_host
    assert (after.sent_bytes, after.received_bytes) == (before.sent_bytes, before.received_bytes)
    assert {row.is_sender for row in after.intervals} == {True}
