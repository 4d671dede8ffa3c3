"""Pings of other systems and in other languages, written here in the forms that their systems print."""

from __future__ import annotations

import pytest

from measuretwice.parse import ParseError, TruncatedError, parse_ping
from measuretwice.parse.formats import format_of, plain
from measuretwice.parse.ping_forms import ping_tests, whole_ping

A = "10.10.2.100"
# Of each language of Windows: the beginning, an answer (twice printed), the counts, the times.
WINDOWS = {
    "English": f"""
Pinging {A} with 32 bytes of data:
Reply from {A}: bytes=32 time=40ms TTL=63
Request timed out.
Reply from {A}: bytes=32 time=43ms TTL=63

Ping statistics for {A}:
    Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),
Approximate round trip times in milli-seconds:
    Minimum = 40ms, Maximum = 43ms, Average = 41ms
""",
    "German": f"""
Ping wird ausgeführt für {A} mit 32 Bytes Daten:
Antwort von {A}: Bytes=32 Zeit=40ms TTL=63
Zeitüberschreitung der Anforderung.
Antwort von {A}: Bytes=32 Zeit=43ms TTL=63

Ping-Statistik für {A}:
    Pakete: Gesendet = 3, Empfangen = 2, Verloren = 1
    (33% Verlust),
Ca. Zeitangaben in Millisek.:
    Minimum = 40ms, Maximum = 43ms, Mittelwert = 41ms
""",
    "French": f"""
Envoi d’une requête 'Ping'  {A} avec 32 octets de données :
Réponse de {A} : octets=32 temps=40 ms TTL=63
Délai d’attente de la demande dépassé.
Réponse de {A} : octets=32 temps=43 ms TTL=63

Statistiques Ping pour {A}:
    Paquets : envoyés = 3, reçus = 2, perdus = 1 (perte 33%),
Durée approximative des boucles en millisecondes :
    Minimum = 40ms, Maximum = 43ms, Moyenne = 41ms
""",
    "Portuguese": f"""
Disparando {A} com 32 bytes de dados:
Resposta de {A}: bytes=32 tempo=40ms TTL=63
Esgotado o tempo limite do pedido.
Resposta de {A}: bytes=32 tempo=43ms TTL=63

Estatísticas do Ping para {A}:
    Pacotes: Enviados = 3, Recebidos = 2, Perdidos = 1 (33% de
             perda),
Aproximar um número redondo de vezes em milissegundos:
    Mínimo = 40ms, Máximo = 43ms, Média = 41ms
""",
    "Russian": f"""
Обмен пакетами с {A} по с 32 байтами данных:
Ответ от {A}: число байт=32 время=40мс TTL=63
Превышен интервал ожидания для запроса.
Ответ от {A}: число байт=32 время=43мс TTL=63

Статистика Ping для {A}:
    Пакетов: отправлено = 3, получено = 2, потеряно = 1
    (33% потерь)
Приблизительное время приема-передачи в мс:
    Минимальное = 40мсек, Максимальное = 43 мсек, Среднее = 41 мсек
""",
    "Turkish": f"""
{A} 32 bayt veri ile ping:
{A} cevabı: bayt=32 süre=40ms TTL=63
İstek zaman aşımına uğradı.
{A} cevabı: bayt=32 süre=43ms TTL=63

{A} için Ping istatistiği:
    Paket: Giden = 3, Gelen = 2, Kaybolan = 1 (%33 kayıp),
Mili saniye türünden yaklaşık tur süreleri:
    En Az = 40ms, En Çok = 43ms, Ortalama = 41ms
""",
    "Chinese": f"""
正在 Ping {A} 具有 32 字节的数据:
来自 {A} 的回复: 字节=32 时间=40ms TTL=63
请求超时。
来自 {A} 的回复: 字节=32 时间=43ms TTL=63

{A} 的 Ping 统计信息:
    数据包: 已发送 = 3\uff0c已接收 = 2\uff0c丢失 = 1 (33% 丢失)\uff0c
往返行程的估计时间(以毫秒为单位):
    最短 = 40ms\uff0c最长 = 43ms\uff0c平均 = 41ms
""",
    "Japanese": f"""
{A} に ping を送信しています 32 バイトのデータ:
{A} からの応答: バイト数 =32 時間 =40ms TTL=63
要求がタイムアウトしました。
{A} からの応答: バイト数 =32 時間 =43ms TTL=63

{A} の ping 統計:
    パケット数: 送信 = 3、受信 = 2、損失 = 1 (33% の損失)、
ラウンド トリップの概算時間 (ミリ秒):
    最小 = 40ms、最大 = 43ms、平均 = 41ms
""",
    "Korean": f"""
Ping {A} 32바이트 데이터 사용:
{A}의 응답: 바이트=32 시간=40ms TTL=63
요청 시간이 만료되었습니다.
{A}의 응답: 바이트=32 시간=43ms TTL=63

{A}에 대한 Ping 통계:
    패킷: 보냄 = 3, 받음 = 2, 손실 = 1 (33% 손실),
왕복 시간(밀리초):
    최소 = 40ms, 최대 = 43ms, 평균 = 41ms
""",
}
CODE_PAGES = {
    "English": "cp437", "German": "cp850", "French": "cp850", "Portuguese": "cp850", "Russian": "cp866",
    "Turkish": "cp857", "Chinese": "gbk", "Japanese": "cp932", "Korean": "cp949",
}  # fmt: skip


@pytest.mark.parametrize("page", ["as UTF-8", "in the console's code page"])
@pytest.mark.parametrize("language", WINDOWS)
def test_windows_in_any_language(language: str, page: str) -> None:
    text = WINDOWS[language].replace("\n", "\r\n")
    if page != "as UTF-8":
        text = text.encode(CODE_PAGES[language], "replace").decode("utf-8", "replace")
    assert format_of(text, "ping.txt").tool == "ping"
    run = parse_ping(text, "ping.txt")
    assert (run.address, run.payload_bytes) == (A, 32)
    assert (run.transmitted, run.received, run.errors) == (3, 2, 0)
    assert (run.rtt_min_ms, run.rtt_avg_ms, run.rtt_max_ms) == (40, 41, 43)
    assert [(reply.rtt_ms, reply.ttl) for reply in run.replies] == [(40, 63), (43, 63)]
    assert run.resolution_ms == 1


def test_windows_counts_a_routers_refusal_as_received() -> None:
    text = """Pinging 10.10.2.100 with 32 bytes of data:
Reply from 10.10.1.69: Destination host unreachable.
Reply from 10.10.2.100: bytes=32 time<1ms TTL=128

Ping statistics for 10.10.2.100:
    Packets: Sent = 2, Received = 2, Lost = 0 (0% loss),
Approximate round trip times in milli-seconds:
    Minimum = 0ms, Maximum = 0ms, Average = 0ms
"""
    run = parse_ping(text, "a")
    assert (run.transmitted, run.received, run.errors, run.loss_ratio) == (2, 1, 1, 0.5)
    assert (run.rtt_min_ms, run.replies[0].rtt_ms) == (0, 0)


def test_windows_over_ipv6_names_neither_bytes_nor_ttl() -> None:
    text = """Pinging juliet.example.net [fd00:2::100] with 32 bytes of data:
Reply from fd00:2::100: time=40ms
Reply from fd00:2::100: time<1ms

Ping statistics for fd00:2::100:
    Packets: Sent = 2, Received = 2, Lost = 0 (0% loss),
Approximate round trip times in milli-seconds:
    Minimum = 0ms, Maximum = 40ms, Average = 20ms
"""
    assert format_of(text, "a").tool == "ping"
    run = parse_ping(text, "a")
    assert (run.address, run.payload_bytes, run.received) == ("fd00:2::100", 32, 2)
    assert [reply.rtt_ms for reply in run.replies] == [40, 0]


HEAD = f"PING {A} ({A}) 56(84) bytes of data.\n"


@pytest.mark.parametrize(
    ("name", "text", "counts", "times", "resolution_ms"),
    [
        (
            "iputils in German, with a comma",
            f"PING {A} ({A}) 56(84) Bytes an Daten.\n64 Bytes von {A}: icmp_seq=1 ttl=63 Zeit=40,2 ms\n\n"
            f"--- {A} ping-Statistik ---\n2 Pakete übertragen, 1 empfangen, 50% Paketverlust, Zeit 1001ms\n"
            "rtt min/avg/max/mdev = 40,154/40,154/40,154/0,000 ms\n",
            (2, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "iputils in French",
            f"PING {A} ({A}) 56(84) octets de données.\n64 octets de {A} : icmp_seq=1 ttl=63 temps=40.2 ms\n\n"
            f"--- statistiques ping {A} ---\n1 paquets transmis, 1 reçus, 0% packet loss, time 0ms\n"
            "rtt min/avg/max/mdev = 40.154/40.154/40.154/0.000 ms\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "iputils in Russian",
            f"PING {A} ({A}) 56(84) байт(а) данных.\n64 байт из {A}: icmp_seq=1 ttl=63 время=40.2 мс\n\n"
            f"--- {A} ping статистика ---\n1 пакетов передано, 1 получено, 0% packet loss, время 0мс\n"
            "rtt min/avg/max/mdev = 40.154/40.154/40.154/0.000 мс\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "iputils of 2010 with errors, duplicates and corruption",
            HEAD + f"64 bytes from {A}: icmp_req=1 ttl=63 time=40.2 ms\nFrom 10.10.1.1 icmp_seq=3 Time to live exceeded\n"
            f"64 bytes from {A}: icmp_req=1 ttl=63 time=40.3 ms (DUP!)\n^C\n--- {A} ping statistics ---\n"
            "3 packets transmitted, 1 received, +1 duplicates, +1 corrupted, +1 errors, 66% packet loss, time 2001ms\n"
            "rtt min/avg/max/mdev = 40.154/40.254/40.354/0.100 ms, pipe 2\n",
            (3, 1, 1), (40.154, 40.254, 40.354), 0.001,
        ),
        (
            "ping -D -A -v of today",
            f"ping: sock4.fd: 3 (socktype: SOCK_DGRAM), sock6.fd: 4\n\nai->ai_family: AF_INET\n{HEAD}"
            f"[1731700000.123456] 64 bytes from {A}: icmp_seq=1 ident=7 ttl=63 time=40.2 ms\n\n"
            f"--- {A} ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
            "rtt min/avg/max/mdev = 40.154/40.154/40.154/0.000 ms, ipg/ewma 0.000/40.154 ms\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "macOS with a time of day, and late answers",
            f"PING {A} ({A}): 56 data bytes\n19:46:40.123456 64 bytes from {A}: icmp_seq=0 ttl=63 time=40.154 ms\n"
            f"Request timeout for icmp_seq 1\n\n--- {A} ping statistics ---\n"
            "2 packets transmitted, 1 packets received, 50.0% packet loss, 1 packets out of wait time\n"
            "round-trip min/avg/max/stddev = 40.154/40.154/40.154/nan ms\n".replace("nan", "0.000"),
            (2, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "FreeBSD 14 over IPv6",
            "PING(56=40+8+8 bytes) fd00:1::100 --> fd00:2::100\n"
            "16 bytes from fd00:2::100, icmp_seq=0 hlim=63 time=40.154 ms\n\n--- fd00:2::100 ping statistics ---\n"
            "1 packets transmitted, 1 packets received, 0.0% packet loss\n"
            "round-trip min/avg/max/stddev = 40.154/40.154/40.154/0.000 ms\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "NetBSD",
            f"PING {A} ({A}): 56 data bytes\n64 bytes from {A}: icmp_seq=0 ttl=63 time=40.154123 ms\n\n"
            f"----{A} PING Statistics----\n1 packets transmitted, 1 packets received, 0.0% packet loss\n"
            "  round-trip min/avg/max/stddev = 40.154123/40.154123/40.154123/0.000000 ms\n",
            (1, 1, 0), (40.154123, 40.154123, 40.154123), 0.000001,
        ),
        (
            "SunOS",
            f"PING juliet: 56 data bytes\n64 bytes from juliet ({A}): icmp_seq=0. time=40.2 ms\n^C\n"
            "----juliet PING Statistics----\n1 packets transmitted, 1 packets received, 0% packet loss\n"
            "round-trip (ms)  min/avg/max/stddev = 40.2/40.2/40.2/-NaN\n".replace("-NaN", "0.0"),
            (1, 1, 0), (40.2, 40.2, 40.2), 0.1,
        ),
        (
            "AIX",
            f"PING juliet: ({A}): 56 data bytes\n64 bytes from {A}: icmp_seq=0 ttl=63 time=40 ms\n\n"
            "----juliet PING Statistics----\n1 packets transmitted, 1 packets received, 0% packet loss\n"
            "round-trip min/avg/max = 40/40/40 ms\n",
            (1, 1, 0), (40, 40, 40), 1,
        ),
        (
            "GNU inetutils",
            f"PING {A} ({A}): 56 data bytes, id 0x00e1 = 225\n64 bytes from {A}: icmp_seq=0 ttl=63 time=40,154 ms\n"
            f"--- {A} ping statistics ---\n1 packets transmitted, 1 packets received, 0% packet loss\n"
            "round-trip min/avg/max/stddev = 40,154/40,154/40,154/0,000 ms\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "busybox",
            f"PING {A} ({A}): 56 data bytes\n64 bytes from {A}: seq=0 ttl=63 time=40.154 ms\n\n"
            f"--- {A} ping statistics ---\n1 packets transmitted, 1 packets received, 0% packet loss\n"
            "round-trip min/avg/max = 40.154/40.154/40.154 ms\n",
            (1, 1, 0), (40.154, 40.154, 40.154), 0.001,
        ),
        (
            "toybox (Android)",
            f"Ping juliet ({A}): 56(84) bytes.\n64 bytes from {A}: icmp_seq=1 ttl=63 time=40 ms\n\n"
            f"--- {A} ping statistics ---\n1 packets transmitted, 1 received, 0% packet loss\n"
            "round-trip min/avg/max = 40/40/40 ms\n",
            (1, 1, 0), (40, 40, 40), 1,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)  # fmt: skip
def test_other_systems(
    name: str, text: str, counts: tuple[int, int, int], times: tuple[float, float, float], resolution_ms: float
) -> None:  # fmt: skip
    assert format_of(text, name).tool == "ping"
    run = parse_ping(text, name)
    assert (run.transmitted, run.received, run.duplicates) == counts
    assert (run.rtt_min_ms, run.rtt_avg_ms, run.rtt_max_ms) == times
    assert run.resolution_ms == pytest.approx(resolution_ms)
    assert run.replies[0].rtt_ms == pytest.approx(times[0], abs=0.5)
    assert "juliet" in text or run.address in (A, "fd00:2::100")


FPING = f"""[1585061216.814108] {A} : [0], 64 bytes, 40.1 ms (40.1 avg, 0% loss)
[1585061217.814108] {A} : [1], timed out (40.1 avg, 50% loss)
[1585061218.814108] {A} : [2], 64 bytes, 40.3 ms (40.2 avg, 33% loss)
"""


def test_fping() -> None:
    total = f"\n{A} : xmt/rcv/%loss = 3/2/33%, min/avg/max = 40.1/40.2/40.3\n"
    for text in (FPING, FPING + total):
        assert format_of(text, "a").tool == "ping"
        run = parse_ping(text, "a")
        assert (run.address, run.payload_bytes) == (A, 56)
        assert (run.transmitted, run.received, len(run.replies)) == (3, 2, 2)
        assert (run.rtt_min_ms, run.rtt_max_ms) == (40.1, 40.3)
        assert run.rtt_avg_ms == pytest.approx(40.2)
        assert run.replies[0].timestamp_s == 1585061216.814108
        assert run.resolution_ms == pytest.approx(0.1)
    assert parse_ping(total, "a").received == 2
    listed = f"{A} : 40.12 - 40.32\n"
    assert parse_ping(FPING + listed, "a") == parse_ping(FPING, "a")
    run = parse_ping(listed, "a")
    assert (run.transmitted, run.received, run.rtt_min_ms, run.rtt_max_ms) == (3, 2, 40.12, 40.32)
    with pytest.raises(ParseError, match="fping of 2 hosts; expected one a file"):
        parse_ping(FPING + FPING.replace(A, "10.10.2.101"), "a")


def test_a_clock_that_went_back() -> None:
    text = (
        f"{HEAD}64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n"
        "Warning: time of day goes back (-17749us), taking countermeasures.\n"
        f"64 bytes from {A}: icmp_seq=2 ttl=63 time=0.000 ms\n\n--- {A} ping statistics ---\n"
        "2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n"
        "rtt min/avg/max/mdev = 0.000/20.077/40.154/20.077 ms\n"
    )
    assert parse_ping(text, "a").went_back == 1
    assert parse_ping(text, "a").least_ms is None
    assert (
        parse_ping(
            text.replace("Warning: time of day goes", "Warnung: Tageszeit geht"), "a"
        ).went_back
        == 1
    )
    assert parse_ping(text.replace("time=0.000", "time=-17.7"), "a").went_back == 2
    assert parse_ping("\n".join(line for line in text.splitlines() if "Warn" not in line), "a").went_back == 0  # fmt: skip


def test_the_share_that_was_lost_may_be_left_out_and_lines_may_be_set_in() -> None:
    text = WINDOWS["German"].replace("    (33% Verlust),\n", "")
    assert parse_ping(text, "a").received == 2
    whole = (
        f"{HEAD}64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n--- {A} ping statistics ---\n"
        "1 packets transmitted, 1 received, 0% packet loss, time 0ms\nrtt min/avg/max/mdev = 40.2/40.2/40.2/0.0 ms\n"
    )
    set_in = "".join(f"\t{line}" for line in whole.splitlines(keepends=True))
    assert format_of(set_in, "a").tool == "ping"
    assert parse_ping(set_in, "a") == parse_ping(whole, "a")


def test_what_is_left_when_lines_were_picked_out() -> None:
    """By `| tail -2`, `| tail -3` and `| grep time=`, and what ping -f prints for each packet."""
    rtt = "rtt min/avg/max/mdev = 40.154/40.254/40.354/0.100 ms\n"
    counts = "2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n"
    for text in (counts + rtt, f"--- {A} ping statistics ---\n{counts}{rtt}"):
        assert format_of(text, "a").tool == "ping"
        run = parse_ping(text, "a")
        assert (run.received, run.rtt_min_ms, run.payload_bytes) == (2, 40.154, None)
        assert run.address in ("", A)
    replies = f"64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n64 bytes from {A}: icmp_seq=2 ttl=63 time=40.4 ms\n"
    assert format_of(replies, "a").tool == "ping"
    run = parse_ping(whole_ping(replies, "a"), "a")
    assert (run.received, run.rtt_min_ms, run.ended) == (2, 40.2, False)
    with pytest.raises(TruncatedError, match="statistics"):
        whole_ping(rtt, "a")
    flood = f"{HEAD}.\b \b.\b \b\n--- {A} ping statistics ---\n{counts}{rtt.replace(' ms', ' ms, ipg/ewma 9.1/8.2 ms')}"
    assert parse_ping(flood, "a").received == 2


def test_a_ping_that_was_stopped_is_counted_from_its_answers() -> None:
    stopped = (
        f"{HEAD}64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n"
        f"64 bytes from {A}: icmp_seq=3 ttl=63 time=40.4 ms\n64 bytes from {A}: icmp_s"
    )
    with pytest.raises(ParseError, match="line 4"):
        parse_ping(stopped, "a")
    run = parse_ping(whole_ping(stopped, "a"), "a")
    assert (run.transmitted, run.received, run.ended) == (3, 2, False)
    assert (run.rtt_min_ms, run.rtt_avg_ms, run.rtt_max_ms) == (40.2, 40.3, 40.4)
    whole = f"{stopped}eq=4 ttl=63 time=40.6 ms\n\n--- {A} ping statistics ---\n4 packets tr"
    assert parse_ping(whole_ping(whole, "a"), "a").transmitted == 4
    with pytest.raises(TruncatedError):
        whole_ping(HEAD, "a")


def test_windows_stopped() -> None:
    text = WINDOWS["Russian"].partition("\n\n")[0] + "\n"
    with pytest.raises(TruncatedError):
        parse_ping(text, "a")
    run = parse_ping(whole_ping(text, "a"), "a")
    assert (run.transmitted, run.received, run.rtt_min_ms, run.ended) == (3, 2, 40, False)
    assert whole_ping(WINDOWS["Russian"], "a") == WINDOWS["Russian"]


def test_several_pings_in_a_file() -> None:
    unix = f"{HEAD}64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n"
    assert ping_tests(f"$ ping\n{unix}\n{unix}{unix}") == [f"$ ping\n{unix}\n", unix, unix]
    for language, text in WINDOWS.items():
        tests = ping_tests(f"C:\\> ping -n 3 {A}\n{text}{text}")
        assert [parse_ping(test, language).received for test in tests] == [2, 2]
    assert ping_tests(FPING) == [FPING]


@pytest.mark.parametrize(
    "stamp",
    ["Nov 15 19:46:{:02} ", "[2024-11-15 19:46:{:02}] ", "17317000{:02}.123456 ", "romeo | "],
)
def test_what_a_logger_puts_before_each_line_is_no_matter(stamp: str) -> None:
    text = (
        f"{HEAD}64 bytes from {A}: icmp_seq=1 ttl=63 time=40.2 ms\n64 bytes from {A}: icmp_seq=2 ttl=63 time=40.4 ms\n"
        f"\n--- {A} ping statistics ---\n2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n"
        "rtt min/avg/max/mdev = 40.154/40.254/40.354/0.100 ms\n"
    )
    stamped = "".join(
        stamp.format(n) + line for n, line in enumerate(text.splitlines(keepends=True))
    )
    assert format_of(plain(stamped), "a").tool == "ping"
    assert parse_ping(plain(stamped), "a") == parse_ping(text, "a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Type escape sequence to abort.\n!!!!!\nSuccess rate is 100 percent (5/5), round-trip min/avg/max = 1/2/4 ms\n", "Cisco"),
        (f"PING {A}:80 (/):\nconnected to {A}:80 (123 bytes), seq=0 time=40.1 ms\n--- http://{A}/ ping statistics ---\n1 connects, 1 ok, 0.00% failed, time 41ms\n", "TCP or HTTP"),
        (f"Source        Destination     IPV4Address      Bytes    Time(ms)\nROMEO         {A}     {A}      32       40\n", "PowerShell"),
        (f"ARPING {A} from 10.10.2.1 eth0\nUnicast reply from {A} [52:54:00:00:01:02]  0.812ms\n", "arping"),
        (f"{A} is alive\n", "who answers"),
        (f"HPING {A} (eth1 {A}): S set, 40 headers + 0 data bytes\nlen=44 ip={A} ttl=63 DF id=0 seq=0 win=64240 rtt=40.1 ms\n\n--- {A} hping statistic ---\n1 packets transmitted, 1 packets received, 0% packet loss\nround-trip min/avg/max = 40.1/40.1/40.1 ms\n", "hping"),
        ("ping: connect: Network is unreachable\n", "an error of ping"),
        ("tcpdump: listening on eth2, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n0 packets captured\n", "beside its packets"),
        (f'{{"destination_ip": "{A}", "packets_transmitted": 5, "packets_received": 5}}\n', "JSON"),
        ("--- twping statistics from [romeo]:8840 to [juliet]:8850 ---\n100 sent, 0 lost\n", "twping"),
    ],
)  # fmt: skip
def test_what_is_no_ping_is_called_by_its_name(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        format_of(plain(text), "a")
