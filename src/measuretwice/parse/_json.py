"""JSON with the place of every mistake."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from measuretwice.parse._text import excerpt
from measuretwice.parse.errors import ParseError

_NAN = re.compile(r"\b(?:nan|inf)\b")
# Strings are matched first, so that a "nan" inside of one is left alone.
_STRING_OR_NAN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:nan|inf)\b')
# Larger numbers aren't counted or measured by any tool; as 1e400 they would be infinite.
_MOST = 1e39


def _as_json_nan(match: re.Match[str]) -> str:
    # The same number of characters, so that lines and columns in messages stay right.
    token = match.group()
    return token if token.startswith('"') else "NaN".rjust(len(token))


def load(text: str, source: str, expected: str) -> object:
    """The one JSON document of a text; NaN and infinity (C's `-nan`, `inf` too) become None.

    Raises ParseError with line and column for a text that is cut off, not JSON, or followed by a
    second document.
    """
    # Most documents have neither, and a search for the letters costs nothing.
    if ("nan" in text or "inf" in text) and _NAN.search(text):
        text = _STRING_OR_NAN.sub(_as_json_nan, text)
    try:
        value: object = json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            problem = "a second document or other text begins here; expected one document"
        elif error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            problem = f"the file ends in the middle of the document, cut off; expected {expected}"
        else:
            problem = f"not JSON ({error.msg}); expected {expected}"
        raise ParseError(source, f"line {error.lineno} column {error.colno}", problem) from None
    except (RecursionError, ValueError):
        # Nested too deeply, or a number of thousands of digits: no tool writes that.
        raise ParseError(source, "line 1", f"not readable JSON; expected {expected}") from None
    return value


@dataclass(frozen=True)
class JsonObject:
    """A JSON object that knows where in which file it stands.

    The methods give None for a key that is absent or null, and raise ParseError with the JSON
    path for a value of another type; `need_…` raise it for an absent one too.
    """

    data: dict[str, object]
    path: str
    source: str

    @classmethod
    def of(cls, value: object, path: str, source: str) -> JsonObject:
        if not isinstance(value, dict):
            raise _ill_typed(source, path, value, "an object")
        return cls(value, path, source)

    def child(self, key: str) -> JsonObject | None:
        value = self.data.get(key)
        if value is None:
            return None
        return JsonObject.of(value, f"{self.path}.{key}", self.source)

    def children(self, key: str) -> tuple[JsonObject, ...]:
        """The objects of an array; none if the key is absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        path = f"{self.path}.{key}"
        if not isinstance(value, list):
            raise _ill_typed(self.source, path, value, "an array")
        return tuple(
            JsonObject.of(item, f"{path}[{i}]", self.source) for i, item in enumerate(value)
        )

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        if value is not None and not isinstance(value, str):
            raise _ill_typed(self.source, f"{self.path}.{key}", value, "a string")
        return value

    def flag(self, key: str) -> bool | None:
        """A truth value; iperf3 writes some as 0 and 1."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise _ill_typed(self.source, f"{self.path}.{key}", value, "true or false")

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        if isinstance(value, str) and value.lower().lstrip("-") in ("nan", "inf"):
            return None
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST:
            return value
        raise _ill_typed(self.source, f"{self.path}.{key}", value, "a number")

    def integer(self, key: str) -> int | None:
        value = self.number(key)
        if value is None:
            return None
        # Large whole numbers may be written with an exponent.
        whole = int(value)
        if whole != value:
            raise _ill_typed(self.source, f"{self.path}.{key}", value, "a whole number")
        return whole

    def need_child(self, key: str) -> JsonObject:
        child = self.child(key)
        if child is None:
            self._missing(key)
        return child

    def need_text(self, key: str) -> str:
        text = self.text(key)
        if text is None:
            self._missing(key)
        return text

    def need_number(self, key: str) -> float:
        number = self.number(key)
        if number is None:
            self._missing(key)
        return number

    def need_integer(self, key: str) -> int:
        integer = self.integer(key)
        if integer is None:
            self._missing(key)
        return integer

    def _missing(self, key: str) -> NoReturn:
        raise ParseError(self.source, f"{self.path}.{key}", "missing; expected a value")


def _ill_typed(source: str, path: str, value: object, expected: str) -> ParseError:
    return ParseError(source, path, f"found {excerpt(json.dumps(value))}; expected {expected}")
