"""What a column of a roster holds, by its heading: in the languages in which systems export.

Names of Canvas, Moodle, Blackboard, Brightspace and of universities' own lists, without accents
and capitals. Moodle translates its headings: these are of its language packs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence


def plain(heading: str) -> str:
    """A heading without what doesn't tell it from others: accents, capitals, kinds of quotes, spaces."""
    text = unicodedata.normalize(
        "NFKD", heading.replace("\u2019", "'").replace("_", " ").casefold()
    )
    bare = "".join(sign for sign in text if not unicodedata.combining(sign))
    return " ".join(bare.strip(" \t\ufeff'\":.*").split())


def _names(*headings: str) -> frozenset[str]:
    return frozenset(plain(heading) for heading in headings)


# In which column the id stands: the first of these that every student has, each another. One set a
# kind, in every language; what changes with the assignment comes last.
ID_KINDS = tuple(
    _names(*kind)
    for kind in (
        {
            "student id", "student number", "student no", "orgdefinedid", "matrikelnummer",
            "matrikelnr", "matr.-nr", "matr-nr", "matr. nr", "matrikel", "numero etudiant", "n° etudiant",
            "no etudiant", "code etudiant", "matricule", "matricula", "numero de matricula", "nº de matricula",
            "numero de estudiante", "numero de aluno", "n.º de aluno", "numero mecanografico", "studentnummer",
            "studienummer", "matricola", "opiskelijanumero", "numer albumu",
        },
        {"sis user id", "sis id"},
        {
            "id number", "id-nummer", "numero d'identification", "numero de id", "numero de identificacion",
            "id del usuario", "numero de identificacao", "numero id", "codice identificativo", "numero identificativo",
        },
        {
            "username", "user name", "user", "login", "benutzername", "nutzername", "anmeldename", "kennung",
            "benutzerkennung", "loginname", "nom d'utilisateur", "nombre de usuario", "usuario", "gebruikersnaam",
            "nome de usuario", "nome de utilizador", "identificacao de usuario", "utilizador", "nome utente",
            "id utente",
        },
        {"sis login id", "login id"},
        {"id", "user id", "userid"},
        {
            "email address", "email", "e-mail", "e-mail address", "mail", "e-mail-adresse", "emailadresse",
            "mailadresse", "adresse de courriel", "adresse e-mail", "adresse electronique", "courriel",
            "direccion de correo", "direccion de correo electronico", "correo electronico", "correo", "e-mailadres",
            "emailadres", "endereco de email", "endereco de e-mail", "endereco de correio eletronico",
            "indirizzo email", "indirizzo e-mail",
        },
        {"identifier", "identifiant", "identificador", "identificatie", "identificativo", "participant", "teilnehmer/in"},
    )
)  # fmt: skip
FIRST_NAMES = _names(
    "first name", "firstname", "given name", "forename", "vorname", "vorname(n)", "vornamen", "prenom",
    "prenom(s)", "prenoms", "voornaam", "primeiro nome", "nome proprio", "roepnaam",
)  # fmt: skip
LAST_NAMES = _names(
    "last name", "lastname", "surname", "family name", "nachname", "familienname", "zuname", "nom de famille",
    "apellido", "apellidos", "apellido(s)", "achternaam", "sobrenome", "apelido", "apelido(s)", "ultimo nome",
    "cognome",
)  # fmt: skip
FULL_NAMES = _names(
    "student", "full name", "student name", "display name", "vollstandiger name", "name, vorname", "nachname, vorname",
    "teilnehmer", "student/in", "studierende/r", "nom complet", "nom, prenom", "etudiant", "nombre completo",
    "apellidos y nombre", "apellidos, nombre", "estudiante", "alumno", "volledige naam", "nome completo", "aluno",
    "estudante", "nome e cognome", "studente",
)  # fmt: skip
# What these hold, the columns beside them tell: the first name beside a last name, and the other way.
EITHER_NAMES = _names("name", "nom", "nombre", "naam", "nome")
GRADES = _names(
    "grade", "mark", "marks", "points", "score", "result", "bewertung", "note", "punkte", "gesamtpunkte", "ergebnis",
    "points obtenus", "resultat", "calificacion", "nota", "puntos", "puntuacion", "beoordeling", "cijfer", "punten",
    "avaliacao", "pontos", "pontuacao", "classificacao", "valutazione", "punteggio", "voto",
)  # fmt: skip
STATUS = _names("status", "statut", "estado", "etat", "stato")
# What Moodle puts before a number in its grading worksheet, where it also names a folder by that number.
PARTICIPANT = re.compile(
    r"(participant|teilnehmer/in|teilnehmer|participante|deelnemer|partecipante)\s*([0-9]+)"
)
SHORTENED = re.compile(r"[0-9][.,][0-9]+E\+[0-9]+", re.IGNORECASE)


def participant_number(text: str) -> str | None:
    """The number in 'Participant 1234', as Moodle writes it in any of these languages."""
    match = PARTICIPANT.fullmatch(plain(text))
    return match[2] if match else None


def heading_kind(heading: str) -> int | None:
    """Which of ID_KINDS a heading is."""
    name = plain(heading)
    return next((place for place, kind in enumerate(ID_KINDS) if name in kind), None)


def name_columns(headings: Sequence[str]) -> tuple[int | None, int | None, int | None]:
    """Return the places of the full name, the first and the last name, each where there is one."""
    names = [plain(heading) for heading in headings]

    def place(of: frozenset[str]) -> int | None:
        return next((place for place, name in enumerate(names) if name in of), None)

    full, first, last, either = (
        place(of) for of in (FULL_NAMES, FIRST_NAMES, LAST_NAMES, EITHER_NAMES)
    )
    if either is not None:
        if first is not None and last is None:
            last = either
        elif last is not None and first is None:
            first = either
        elif full is None:
            full = either
    return full, first, last


def is_heading_line(cells: Sequence[str]) -> bool:
    """Is it the line with the headings? It has a column that an id can stand in."""
    return any(heading_kind(text) is not None for text in cells)
