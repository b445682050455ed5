"""Whether a text is a line of a program, or its format string, and not what a program prints.

People post sources beside logs, and repositories hold both: what a program would print if
something failed is no failure.
"""

from __future__ import annotations

import re

_ANYWHERE = re.compile(
    r"\bthrow new |\bassert\w{0,20}[.(]|System\.(?:out|err)|\b(?:log(?:ger)?|LOG(?:GER)?)\."
    r"(?:trace|debug|info|warn|warning|error|fatal|exception|critical|Print|Fatal|Error|Info)\w{0,4}\(|"
    r"console\.\w{1,6}\(|\bprintf?\(|\bcatch \(|\bnew \w{1,60}Exception\(|[!=]= ?[\"']|"
    r"\.(?:indexOf|contains|includes|startsWith|Equal|Verify|Errorf?|json)\(|\bfmt\.|"
    r"\bexcept [\w.(]|autoexception| \.\* |\w!\([\"']|\.Log(?:Error|Warning|Information)\(|"
    r"\b[Ll]ogger\.\w{1,12}[\s(]|\bt\.Fatalf?\(|#\{\w|\{[A-Z]\w{1,30}\}|\{\d\}|\{\{|\bit\([\"']|"
    r"LIKE '|@DisplayName|"
    r"RD_KAFKA_RESP_ERR|\w\(s\"|\bgrep -|\bString \w{1,40} = \""
)
# What a line of a program begins with: return "...", if err == "...", raise KafkaError("...")
_STATEMENT = re.compile(
    r"[\s+>#/*|]{0,40}(?:import |(?:return|raise|throw|if|elif|const|private|public|static|def|var|"
    r"let|expect|describe|grep|echo)\b[\s(].{0,200}?[\"'`])"
)
# err = "...", x := Parse("...", producer.fail_with = BufferError("..."
_ASSIGNED = re.compile(r"[\s+>#/*|]{0,40}[\w.\[\]]{1,60} :?= [\w.]{0,60}\(?[\"'`]")
# Outcome(Result.FAILED, "TimeoutException: ..."),
_CALLED = re.compile(r"\w\([^()\n]{0,120}\"[^\"\n]{1,300}\"\)[;,]\s{0,8}\Z")
# None of all these can match without one of its characters or words: most records end here.
_HINTS = re.compile(
    r"[\"'`{]|\.(?:indexOf|contains|includes|startsWith|Equal|Verify|json)\(|throw|catch|System|"
    r"\bnew |except|\.\*|RD_KAFKA|fmt\.|import |\b(?:If|When) |assert|log\w{0,3}\.|LOG|grep|print|"
    r"\.Error|\.Log|@Display|console|%w|topic %s|Logger|Fatal"
)
_PLACEHOLDERS = ("topic {}", "topic %s", "with key: {}", "%w")
# A person explains: If the timeout is reached then ...
_EXPLAINED = re.compile(r"[\s>#*-]{0,8}(?:If|When) (?:the|you|your|a|an|it|this)\b")
_LONGEST = 2000


def is_source_code(text: str) -> bool:
    """Whether *text*, a record on one line, is a line of a program."""
    head = text[:_LONGEST]
    if _HINTS.search(head) is None:
        return False
    if any(words in head for words in _PLACEHOLDERS) or "${" in head[:400]:
        return True
    if "Traceback (most recent call last)" in head:  # it quotes the lines it went through
        return False
    return (
        _ANYWHERE.search(head) is not None
        or _EXPLAINED.match(head) is not None
        or _STATEMENT.match(head) is not None
        or _ASSIGNED.match(head) is not None
        or _CALLED.search(head) is not None
    )
