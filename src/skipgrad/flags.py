"""Flags of the command from the dataclasses that they fill: nothing is declared twice."""

from __future__ import annotations

from dataclasses import MISSING, Field, field, fields, make_dataclass
from functools import reduce
from operator import or_
from typing import Any, get_type_hints

from docstring_parser import parse_from_object

from skipgrad.heads import HEADS, Adaptive, Head
from skipgrad.model import CBOW, Model, SkipGram

ENCODERS: dict[str, type[Model]] = {"skipgram": SkipGram, "cbow": CBOW}


def flags(name: str, owners: dict[str, Any], skip: tuple[str, ...] = ()) -> Any:
    """A dataclass with every option of the owners; what is not given is None, and the owner's default holds."""
    columns = []
    for option in dict.fromkeys(
        item.name for owner in owners.values() for item in fields(owner) if item.name not in skip
    ):
        having = {key: owner for key, owner in owners.items() if option in {item.name for item in fields(owner)}}
        kind = reduce(or_, [get_type_hints(owner)[option] for owner in having.values()])  # choices may differ
        about = {"help": _help(option, having, len(having) < len(owners))}
        columns.append((option, kind | None, field(default=None, metadata=about)))
    made = make_dataclass(name, columns, frozen=True, kw_only=True)
    made.__module__ = __name__  # else it is taken for one of Python's own types, which have no fields
    return made


def model_of(encoder: str, head: str, model_flags: Any, head_flags: Any) -> Model:
    """The model that the flags describe."""
    chosen: Head = made(HEADS, "head", head, head_flags)
    model: Model = made(ENCODERS, "encoder", encoder, model_flags, head=chosen)
    return model


def made(owners: dict[str, Any], noun: str, name: str, given: Any, **more: Any) -> Any:
    """The owner of that name with the flags that were given; a flag of another owner is refused."""
    options = {item.name: getattr(given, item.name) for item in fields(given) if getattr(given, item.name) is not None}
    known = {item.name for item in fields(owners[name])}
    for option in options:
        if option not in known:
            others = [key for key, owner in owners.items() if option in {item.name for item in fields(owner)}]
            flag = option.replace("_", "-")
            raise ValueError(
                f"--{flag} was given, but the {noun} {name} has no such option: leave it out, or choose "
                f"--{noun} {' or '.join(others)}."
            )
    return owners[name](**options, **more)


def _help(option: str, having: dict[str, Any], partly: bool) -> str:
    """The documentation of a field, whose it is, and its defaults."""
    owner = next(iter(having.values()))
    documented = {
        item.arg_name: item.description or ""
        for base in reversed(owner.__mro__[:-1])
        for item in parse_from_object(base).params
    }
    defaults = {key: _default(next(item for item in fields(one) if item.name == option)) for key, one in having.items()}
    values = set(defaults.values())
    shown = values.pop() if len(values) == 1 else ", ".join(f"{key} {value}" for key, value in defaults.items())
    of = f"{', '.join(having)}: " if partly else ""
    default = f" [default: {shown}]" if shown else ""
    return f"{of}{' '.join(documented.get(option, '').split())}{default}"


def _default(option: Field[Any]) -> str:
    value = option.default
    return "" if value is MISSING or value == () else str(value)


HeadFlags = flags("HeadFlags", HEADS)
NO_HEAD_FLAGS = HeadFlags()
ModelFlags = flags("ModelFlags", ENCODERS, skip=("head",))
NO_MODEL_FLAGS = ModelFlags()
# the audit looks at many numbers of draws and proposals at once, and has flags of its own for them
AuditFlags = flags(
    "AuditFlags", {**HEADS, Adaptive.name: Adaptive}, skip=("samples", "proposal", "effective", "shared")
)
NO_AUDIT_FLAGS = AuditFlags()
