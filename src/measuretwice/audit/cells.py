"""A cell's number as people write it, with its unit; and the words of headings and cells, from other languages too."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from measuretwice.base.errors import UserError

# Units

RATE = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kKMmGgTt]i?)?(?P<what>[bB]its?|[bB]ytes?|[oO]ctets?|[bBo])"
    r"(?:[pP][sS]| ?/ ?s(?:ec(?:onds?)?)?|[ _]?[pP]er[ _]?(?:second|sec|s))(?![A-Za-z])"
    r"|(?<![A-Za-z])(?P<short>[kKMmGgTt])[bB]its?(?:[ _]s)?(?![A-Za-z])"
)
# Events of a time are no ratio and no count: `losses_per_s`, `pkt/s`, `1/min`.
FREQUENCY = re.compile(
    r"(?:/|(?<![A-Za-z])per[ _]?) ?(?:s|secs?|seconds?|minutes?|hours?)(?![A-Za-z0-9])|(?<![A-Za-z])(?:[kmg]?pps|[kmg]?hz|[rqt]ps|iops)(?![A-Za-z])",
    re.IGNORECASE,
)
TIME = re.compile(
    r"(?<![A-Za-z'])(?:(?P<ms>ms|msecs?|milliseconds?)|(?P<us>us|[\u00b5\u03bc]s|usecs?|microseconds?)"
    r"|(?P<ns>ns|nsecs?|nanoseconds?)|(?P<min>minutes?)|(?P<s>s|secs?|seconds?|(?<=\()se[gk](?=\))))(?![A-Za-z])"
)
SECONDS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "s": 1.0}
PERCENT = re.compile(r"%|(?<![A-Za-z])(?:per ?cent(?:age)?|pct|prozent)(?![A-Za-z])", re.IGNORECASE)
# A lone B or Mo is a unit only in brackets or behind a number.
BYTES = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kKMmGgTt]i?)?[bB]ytes?(?![A-Za-z])|(?<![A-Za-z])(?P<short>[kKMGT]i?)[bB](?![A-Za-z])"
    r"|(?<=[_(\[ ])(?P<low>[kmg]i?)b(?![A-Za-z])|(?:(?<=[(\[])|^\s+)(?P<octets>[kKMG]?)(?:o|B|octets)(?=[)\]]|\s*$)"
)
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
# Letters of Cyrillic units, as in the Latin ones.
CYRILLIC = str.maketrans(
    "\u041a\u043a\u041c\u043c\u0413\u0431\u0411\u0441\u0438\u0442", "KkMmGbBsit"
)


@dataclass(frozen=True)
class Unit:
    """A unit as it is written, and how many bit/s, seconds, bytes or ones it is.

    `most` is the largest that it may mean: programs write MByte for 10^6 bytes and for 2^20.
    """

    name: str
    factor: float
    quantity: str
    most: float = 0.0


def find_unit(text: str) -> tuple[Unit | None, str]:
    """Find a unit in a heading or behind a number: the unit, and the text without it."""
    latin = text.translate(CYRILLIC)
    if match := RATE.search(latin):
        prefix = (match["short"] or match["prefix"] or "").lower()
        # Bps and B/s are bytes; but who writes MBPS writes all in capitals.
        what = match["what"] or "bit"
        large = what == "B" and not match[0].isupper()
        size = 8 if large or what.lower().startswith(("byte", "o")) else 1
        unit = Unit(match[0], _scale(prefix) * size, "rate")
    elif match := FREQUENCY.search(latin):
        unit = Unit(match[0], 1.0, "frequency")
    elif match := TIME.search(latin):
        unit = Unit(match[0], SECONDS[match.lastgroup or "s"], "time")
    elif match := PERCENT.search(latin):
        unit = Unit("%", 0.01, "ratio")
    elif match := BYTES.search(latin):
        prefix = next(filter(None, match.groups()), "").lower()
        most = 1024.0 ** ("kmgt".find(prefix[0]) + 1) if prefix else 1.0
        unit = Unit(match[0], _scale(prefix), "bytes", most)
    else:
        return None, text
    return unit, f"{text[: match.start()]} {text[match.end() :]}"


def _scale(prefix: str) -> float:
    return 1024.0 ** ("kmgt".find(prefix[0]) + 1) if prefix.endswith("i") else PREFIXES[prefix]


# Numbers

# What people write where there is no value.
NOTHING = {
    "", "-", "--", "---", "n/a", "na", "null", "none", "nil", "\N{EN DASH}", "\N{EM DASH}", "\N{HORIZONTAL ELLIPSIS}",
    "...", "?", "x", "tbd", "dnf", "failed", "fail", "timeout", "error", "not run", "not measured",
}  # fmt: skip
# What Linux and its tools hold where nothing was measured: the largest numbers of 31, 32, 63 and 64 bits.
SENTINELS = {
    2.0**31 - 1,
    2.0**32 - 1,
    2.0**63 - 1,
    2.0**64 - 1,
    (2.0**31 - 1) / 1e3,
    (2.0**32 - 1) / 1e3,
}
DIGITS = r"[+-]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,6})?"
CELL = re.compile(rf"({DIGITS})\s*(\D{{0,14}})")
# 94.2 +- 1.3, 94.2 (1.3 %), 94.2 [93, 95]: what is behind the mean is its spread. A mark of a footnote is nothing.
SPREAD = re.compile(
    rf"(?<=[\w%.])\s*(?:(?:\u00b1|\+/-|\+-|\\pm)\s*{DIGITS}\s*%?|\([^()]*\)|\[[^\[\]]*\]|[*\u2020\u2021\u00b9\u00b2\u00b3]+)"
)
ABOUT = re.compile(r"^(?:~|\u2248|\u2243|ca\.?|about|approx\.?)\s*")
BETWEEN = re.compile(rf"({DIGITS})\s*(?:-|\u2013|\u2014|to|\.\.| / )\s*({DIGITS})(\s*\D{{0,14}})")
# A unit in brackets behind a number: 8421.33 (Mb/s), 40 [ms].
BRACKETS = re.compile(r"(?<=\d)\s*[(\[]\s*([^\d()\[\]]{1,12})[)\]]$")
# How far a number may be from the truth that is called about so much.
ROUGHLY = 0.1
SUFFIX = {"k": 1e3, "m": 1e6, "g": 1e9}
# What only a decimal comma makes, and what only a point does; 1,204 may be of either.
DECIMAL_COMMA = re.compile(
    r"[+-]?(?:\d{1,3}(?:\.\d{3})+,\d|\d+,(?!\d{3}(?!\d))\d|(?:0|\d{4,}),\d|\d{1,3}(?:\.\d{3}){2,}(?!\d))"
)
DECIMAL_POINT = re.compile(
    r"[+-]?(?:\d{1,3}(?:,\d{3})+\.\d|\d*\.\d+(?:[eE][+-]?\d+)?(?![\d.,])|\d{1,3}(?:,\d{3}){2,}(?!\d))"
)
UNITLESS = ("packets", "pkts", "pkt", "p", "x", "flows", "each")
# A longer number was not measured.
MOST_DIGITS = 60
# Nor were these: within them a float holds every product that is computed here.
LARGEST, SMALLEST = 1e30, 1e-30


@dataclass(frozen=True)
class Number:
    """A number as it was printed, and the interval that its last digit leaves open."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Number:
        """Read `95.75` or `1.02E+11`; ValueError for anything else, and for what nobody measures."""
        try:
            exact = Decimal(text.strip())
            half = Decimal(5).scaleb(int(exact.as_tuple().exponent) - 1)
            number = cls(float(exact), float(exact - half), float(exact + half))
        except (ArithmeticError, TypeError, ValueError):
            raise ValueError(f"{text!r} is no number") from None
        if number.high > LARGEST or number.low < -LARGEST or 0 < abs(number.value) < SMALLEST:
            raise ValueError(f"{text!r} is no number that can be measured")
        return number

    @classmethod
    def sum_of(cls, numbers: Sequence[Number]) -> Number:
        value, low, high = (
            math.fsum(getattr(number, end) for number in numbers)
            for end in ("value", "low", "high")
        )
        return cls(value, low, high)

    def over(self, other: Number) -> Number:
        """The quotient by a number above 0, from the least that it may be to the most."""
        return Number(self.value / other.value, self.low / other.high, self.high / other.low)

    def __mul__(self, factor: float) -> Number:
        return Number(self.value * factor, self.low * factor, self.high * factor)

    def times(self, unit: Unit) -> Number:
        """The number in bit/s, seconds, bytes or ones."""
        scaled = self * unit.factor
        if not unit.most:
            return scaled
        # iperf's MBytes are 2^20.
        usual = unit.most if unit.name.endswith("Bytes") else unit.factor
        return Number(self.value * usual, scaled.low, self.high * unit.most)


def read_cell(text: str, decimal_comma: bool) -> tuple[Number | None, Unit | None]:
    """Read a cell: its number, none where it holds none, and the unit behind it, if any.

    Digits may stand in groups of three. A spread behind a mean is passed over, `about` widens the interval, and what is
    between two numbers is the interval of both. ValueError says what the text is not.
    """
    if text.lower() in NOTHING or text[:1] in "<>\u2264\u2265":
        return None, None
    bare = re.sub("(?<=\\d)[ \u00a0\u202f'](?=\\d{3})", "", text)
    if len(bare) > MOST_DIGITS:
        raise ValueError(f"{text[:30]!r} is no number")
    about = bool(ABOUT.match(bare))
    bare = ABOUT.sub("", bare)
    if (match := BRACKETS.search(bare)) and find_unit(f" {match[1]}")[0]:
        bare = f"{bare[: match.start()]} {match[1]}"
    bare = SPREAD.sub(" ", bare).strip()
    if match := BETWEEN.fullmatch(bare):
        low, unit = _plain(f"{match[1]} {match[3]}", text, decimal_comma)
        high, _ = _plain(match[2], text, decimal_comma)
        if low.value > high.value and " / " in bare:
            low, high = high, low
        if low.value > high.value:
            raise ValueError(f"{text[:30]!r} is no number")
        return Number((low.value + high.value) / 2, low.low, high.high), unit
    number, unit = _plain(bare, text, decimal_comma)
    if about:
        half = abs(number.value) * ROUGHLY
        number = Number(number.value, number.low - half, number.high + half)
    return (None, None) if number.value in SENTINELS else (number, unit)


def has_decimal_comma(cells: Iterable[str]) -> bool:
    """Return whether 95,75 stands for 95.75: where some cells are written so and none with a point."""
    kinds = [(bool(DECIMAL_COMMA.match(cell)), bool(DECIMAL_POINT.match(cell))) for cell in cells]
    commas, points = (sum(kind[n] for kind in kinds) for n in (0, 1))
    return commas > 0 and points * 10 < commas


def number_in(text: str, decimal_comma: bool) -> tuple[Number | None, Unit | None]:
    """Read a cell as read_cell does; nothing where it isn't a number."""
    try:
        return read_cell(text, decimal_comma)
    except ValueError:
        return None, None


def _plain(bare: str, text: str, decimal_comma: bool) -> tuple[Number, Unit | None]:
    match = CELL.fullmatch(bare)
    if not match:
        raise ValueError(f"{text[:30]!r} is no number")
    digits, behind = match[1], match[2].strip()
    mark, group = (",", ".") if decimal_comma else (".", ",")
    digits = re.sub(rf"(?<=\d)\{group}(?=\d{{3}}(?:\D|$))", "", digits).replace(mark, ".")
    unit = None
    if behind.lower() in SUFFIX:
        unit = Unit(behind, SUFFIX[behind.lower()], "count")
    elif behind and behind.lower() not in UNITLESS:
        unit, rest = find_unit(f" {behind}")
        if unit is None or rest.strip():
            raise ValueError(f"{text[:30]!r} is no number")
    return Number.of(digits), unit


def read_rate_bps(text: str) -> float:
    """Read a link's rate, `10gbit` or `100 Mbit/s`; UserError for anything else."""
    return _read_option(
        text, "rate", f"--rate {text}: expected a rate with its unit, such as 10gbit or 100mbit"
    )


def read_rtt_s(text: str) -> float:
    """Read a round-trip time, `40ms`, in seconds; UserError for anything else."""
    return _read_option(text, "time", f"--rtt {text}: expected a time with its unit, such as 40ms")


def _read_option(text: str, quantity: str, refusal: str) -> float:
    number, unit = number_in(text.strip(), decimal_comma=False)
    if number is None or unit is None or unit.quantity != quantity or number.value <= 0:
        raise UserError(refusal)
    return number.value * unit.factor


def significant_digits(text: str) -> int:
    """Return how many digits of a number say something: without zeros at either end."""
    digits = re.sub(r"\D", "", re.split(r"[eE]", text)[0])
    return len(digits.strip("0"))


# Words

# Words of the field in other languages, without their accents; names are found by the English ones.
ENGLISH = {
    word: english
    for english, words in {
        "rate": "taxa tasa taux",
        "loss rate": "verlustrate paketverlustrate",
        "total throughput": "gesamtdurchsatz",
        "throughput": "\ucc98\ub9ac\ub7c9 vazao debit durchsatz datenrate datendurchsatz ubertragungsrate rendimiento caudal przepustowosc portata doorvoer genomstromning"
        " \u541e\u5410\u91cf \u541e\u5410\u7387 \u30b9\u30eb\u30fc\u30d7\u30c3\u30c8 \u0441\u043a\u043e\u0440\u043e\u0441\u0442\u044c",
        "goodput": "nutzdatenrate",
        "bandwidth": "banda bandbreite ancho largura passante bandbredd bandbreedte \u5e26\u5bbd",
        "latency": "gecikme latencia latenz latence latenza opoznienie latentie atraso \u5ef6\u8fdf \u65f6\u5ef6 \u0437\u0430\u0434\u0435\u0440\u0436\u043a\u0430",
        "delay": "verzogerung retard retardo ritardo \u9045\u5ef6 \uc9c0\uc5f0",
        "round trip": "umlaufzeit paketumlaufzeit \u5f80\u8fd4\u65f6\u5ef6 \u5f80\u8fd4",
        "loss": "\uc190\uc2e4 \u640d\u5931 kayip perda perte verlust paketverlust perdida perdita strata verlies \u4e22\u5305 \u4e22\u5931 \u043f\u043e\u0442\u0435\u0440\u044f",
        "losses": "perdas pertes verluste paketverluste perdidas perdite straty verliezen \u043f\u043e\u0442\u0435\u0440\u0438",
        "retransmissions": "retransmissoes retransmisiones ritrasmissioni wiederholungen \u91cd\u4f20 \u043f\u043e\u0432\u0442\u043e\u0440\u044b \u043f\u043e\u0432\u0442\u043e\u0440\u043d\u044b\u0435 \u518d\u9001 \uc7ac\uc804\uc1a1",
        "packets": "pacotes paquets pakete paquetes pacchetti pakiety pakketten",
        "sent": "enviados enviado enviadas gesendet gesendete envoyes envoye inviati wyslane verzonden \u53d1\u9001 \u043e\u0442\u043f\u0440\u0430\u0432\u043b\u0435\u043d\u043e",
        "received": "recv rcvd recebidos recebido recebidas recibidos recibido recibidas empfangen empfangene recus recu ricevuti odebrane ontvangen \u63a5\u6536 \u043f\u043e\u043b\u0443\u0447\u0435\u043d\u043e",
        "lost": "perdidos perdido verloren verlorene perdus perdu persi utracone \u043f\u043e\u0442\u0435\u0440\u044f\u043d\u043e",
        "number": "nombre numero anzahl liczba aantal antal qtd quantidade cantidad",
        "flows": "fluxos flusse flujos flussi strome przeplywy stromen \u6d41\u6570",
        "flow": "fluxo flux fluss flujo flusso strom stroom flode przeplyw \u043f\u043e\u0442\u043e\u043a verbindung conexao conexion connexion \u6d41",
        "link": "enlace lien kanal \u94fe\u8def",
        "capacity": "capacidade capacidad capacite kapazitat capacita",
        "index": "indice indeks",
        "fairness": "justica equidade equidad equite gerechtigkeit equita sprawiedliwosci \u516c\u5e73 \u516c\u5e73\u6027",
        "algorithm": "verfahren algoritma \u30a2\u30eb\u30b4\u30ea\u30ba\u30e0 \uc54c\uace0\ub9ac\uc998 algoritmo algorithmus algorithme algorytm \u7b97\u6cd5 \u0430\u043b\u0433\u043e\u0440\u0438\u0442\u043c",
        "duration": "duracao duracion duree dauer durata czas \u65f6\u957f \u0434\u043b\u0438\u0442\u0435\u043b\u044c\u043d\u043e\u0441\u0442\u044c",
        "time": "tempo zeit tiempo temps tijd tid \u65f6\u95f4 \u0432\u0440\u0435\u043c\u044f",
        "transferred": "transferencia transferido transferidos ubertragen ubertragene transfere trasferiti transferidas",
        "size": "tamanho tamano grosse taille dimensione rozmiar \u0440\u0430\u0437\u043c\u0435\u0440 \u043e\u0431\u044a\u0435\u043c",
        "share": "anteil parte parcela proporcion",
        "total": "gesamt insgesamt totale totaal razem ogolem \u603b\u8ba1 \u5408\u8ba1 \u0438\u0442\u043e\u0433\u043e \u0432\u0441\u0435\u0433\u043e",
        "sum": "soma suma summa summe zusammen jumlah toplam osszesen celkem lacznie yhteensa tong somme somma \u603b\u548c",
        "mean": "media medio ortalama keskiarvo prumer atlag rerata medias moyenne moyen mittel mittelwert mittlere mittlerer durchschnitt durchschnittlich"
        " durchschnittliche promedio gemiddelde gemiddeld srednia sredni medelvarde \u5e73\u5747 \u5e73\u5747\u503c"
        " \u0441\u0440\u0435\u0434\u043d\u0435\u0435 \u0441\u0440\u0435\u0434\u043d\u044f\u044f avg avrg average averaged \u00f8",
        "median": "mediana mediane \u4e2d\u4f4d\u6570",
        "max": "maximo maximum maximale massimo peak maks \u6700\u5927 \u6700\u5927\u503c",
        "min": "minimo minimum minimale lowest \u6700\u5c0f \u6700\u5c0f\u503c",
        "std": "stdev stddev sd deviation desvio desvest standardabweichung ecart mdev stderr sem variance",
        "utilization": "utilizacao utilizacion auslastung utilizzo utilisation \u5229\u7528\u7387",
        "bytes": "octets datenmenge",
        "queue": "\u6392\u961f \u961f\u5217",
        "jain": "jains",
    }.items()
    for word in words.split()
}  # fmt: skip
# What programs wrote before UTF-8, the commonest first; and how much of a file tells which.
OLDER_ENCODINGS = (
    "cp1252 cp1250 cp1251 gb18030 shift_jis euc_jp euc_kr big5 cp1253 cp866 koi8_r".split()
)
MOST_SAMPLED = 4000
CJK = {word: english for word, english in ENGLISH.items() if ord(word[0]) > 0x2E80}
# A value in a heading is a condition, as in `Mean FCT (10 ms RTT)`.
VALUE = r"(?<![A-Za-z\d])\d[\d.]* ?(?:%|(?:ms|us|s|sec|[kmg]bit(?:/s)?|[kmg]bps|[kmg]?b|pkts?|packets)\b)"
CONDITION = re.compile(rf"\([^()]*{VALUE}[^()]*\)", re.IGNORECASE)
BARE_CONDITION = re.compile(VALUE, re.IGNORECASE)


def words_of(heading: str) -> tuple[str, Unit | None, bool]:
    """A heading's words in small letters and English, with blanks between; its unit; and whether there is a value
    among its words: `mean rtt`, ms, false."""
    # What stands behind the mean in its cells.
    heading = re.sub(r"(?<=\S)\s*(?:\u00b1|\+/-|\+-).*$", "", heading)
    # MeanRttMs, throughputMbps, PercentLost: as words.
    heading = re.sub(r"(?<=[a-z]{2})(?=[A-Z])", " ", heading)
    heading = re.sub(r"(?<=[a-z] )(?:Ms|Us|Secs?)\b", lambda match: match[0].lower(), heading)
    without = CONDITION.sub(
        " ", re.sub(r"(?i)\b(p?\d\d)\.(\d)(?=th\b|\b)", _joined_digits, heading)
    )
    bare = BARE_CONDITION.sub(" ", without)
    unit, rest = find_unit(bare)
    return plain_words(rest), unit, bare != without


def places_of(column: str, headings: Sequence[str]) -> list[int]:
    """Return the places of the columns that a person means by a heading, or the first part of one, or `#3`."""
    if re.fullmatch(r"#\d+", column) and column not in headings:
        return [int(column[1:]) - 1] if 0 < int(column[1:]) <= len(headings) else []
    plain = " ".join(column.casefold().split())
    folded = [" ".join(heading.casefold().split()) for heading in headings]
    same = [place for place, heading in enumerate(headings) if heading == column]
    alike = [place for place, heading in enumerate(folded) if heading == plain]
    return same or alike or [n for n, h in enumerate(folded) if plain and h.startswith(plain)]


def listed(headings: Sequence[str], most: int = 12) -> str:
    """Headings in a line, not too many."""
    some = ", ".join(repr(heading[:40]) for heading in headings[:most])
    return some + (f" and {len(headings) - most} more" if len(headings) > most else "")


def unknown_columns(
    source: str, headings: Sequence[str], numbers: Sequence[tuple[str, Sequence[float]]]
) -> UserError:
    """Return what to say of a table of which no column is known; `numbers` has the columns that hold some."""
    if not numbers:
        return UserError(
            f"{source}: no table is found here: one has a line of headings, such as flow, goodput (Mbit/s), losses, and "
            f"lines of as many values below it; the first line read has {listed(headings)}"
        )
    # What is nowhere more than 1 is a ratio rather than a rate.
    last, values = numbers[-1]
    choice = f"index={last}" if max(values) <= 1 else f"goodput={last}:Mbit/s"
    return UserError(
        f"{source}: no column is known; found {listed(headings)}: say which is what with --columns, such as --columns "
        f"'{choice}'"
    )


def _joined_digits(match: re.Match[str]) -> str:
    """Return p99.9 as p999, by which words are parted; other numbers as they are."""
    return f"{match[1]}{match[2]}" if match[0][0] in "pP" else match[0]


def plain_words(text: str) -> str:
    """A text's words in small letters and English, with blanks between, `/` as per."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", text).replace("/", " per ")
    for word, english in CJK.items():
        text = text.replace(word, f" {english} ")
    bare = "".join(
        c
        for c in unicodedata.normalize("NFKD", text.casefold().translate({0x142: "l", 0x131: "i"}))
        if not unicodedata.combining(c)
    )
    bare = re.sub(
        r"\b(loss|drop)(?=(?:rate|ratio)\b)|\b(min|max|avg)(?=_?(?:s?rtt|latency)\b)",
        r"\1\2 ",
        bare,
    )
    words = re.sub(r"[\W_]+", " ", bare.replace("'s", "s").replace("\u2019s", "s")).split()
    return " ".join(ENGLISH.get(word, word) for word in words)


def in_older_encoding(content: bytes) -> str:
    """Read bytes in the encoding of an older spreadsheet in which the most headings have words that are known."""
    best, most = content.decode("latin-1"), 0
    known_words = {word for english in ENGLISH.values() for word in english.split()}
    for encoding in OLDER_ENCODINGS:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        words = set(re.findall(r"[^\W\d_]+", text[:MOST_SAMPLED]))
        hits = sum(
            not known_words.isdisjoint(plain_words(word).split())
            for word in words
            if not word.isascii()
        )
        if hits > most:
            best, most = text, hits
    return best


def by_encoding(content: bytes) -> str:
    """Return advice for headings that may have been read in another encoding than their own; empty where they weren't."""
    try:
        content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError:
        return ". The file isn't in UTF-8: if these headings look wrong, save it as UTF-8 first"
    return ""
