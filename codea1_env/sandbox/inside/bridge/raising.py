"""Exceptions between two processes, and the classes that mean the same in both.

An exception of Python's own arrives as itself, by its place in a closed list. A class of the program's or the test's arrives
as a stand-in: one of ours, named by us, that knows a number, derived from the stand-ins of the class's own bases and from the
nearest class of Python's, so that `except` works.
"""

from __future__ import annotations

import builtins
import gc
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..codec.budgets import check_hashes
from ..codec.formats import DecodeError, EncodeError
from ..errors import message_of
from . import handles

if TYPE_CHECKING:
    from .peer import Peer

_MAX_CLASSES = 1000


def _pairs(modules: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((module, name) for module, names in modules.items() for name in names.split())


_BUILTIN_ERRORS = [
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
]
_TYPES = _pairs({
    "builtins": (
        "bool bytearray bytes complex dict enumerate filter float frozenset int list map memoryview object "
        "property range reversed set slice str tuple zip"),
    "collections": "ChainMap Counter OrderedDict UserDict defaultdict deque",
    "datetime": "date datetime time timedelta timezone", "decimal": "Decimal", "fractions": "Fraction",
    "types": "NoneType FunctionType GeneratorType",
})  # fmt: skip
# Where a module was not imported, the next base counts. None of unittest's: a program must not skip a test.
_ERRORS = _pairs({
    "builtins": " ".join(sorted(_BUILTIN_ERRORS)),
    "json": "JSONDecodeError",
    "decimal": (
        "DecimalException DivisionByZero InvalidOperation Clamped ConversionSyntax DivisionImpossible "
        "DivisionUndefined FloatOperation Inexact InvalidContext Overflow Rounded Subnormal Underflow"),
    "re": "error", "csv": "Error", "copy": "Error", "dataclasses": "FrozenInstanceError",
    "statistics": "StatisticsError", "binascii": "Error", "struct": "error", "zlib": "error", "queue": "Empty Full",
    "asyncio": (
        "CancelledError InvalidStateError QueueEmpty QueueFull IncompleteReadError LimitOverrunError "
        "BrokenBarrierError"),
    "subprocess": "CalledProcessError TimeoutExpired SubprocessError",
    "configparser": (
        "Error DuplicateOptionError DuplicateSectionError InterpolationError MissingSectionHeaderError "
        "NoOptionError NoSectionError ParsingError"),
    "xml.etree.ElementTree": "ParseError", "ipaddress": "AddressValueError NetmaskValueError",
    "concurrent.futures": "CancelledError InvalidStateError BrokenExecutor",
    "pickle": "PickleError PicklingError UnpicklingError", "graphlib": "CycleError", "numpy.linalg": "LinAlgError",
    "numpy.exceptions": "AxisError",
    "sqlite3": (
        "Error DatabaseError DataError IntegrityError InterfaceError InternalError NotSupportedError "
        "OperationalError ProgrammingError Warning"),
    "argparse": "ArgumentError ArgumentTypeError", "tomllib": "TOMLDecodeError", "getopt": "GetoptError",
    "calendar": "IllegalMonthError IllegalWeekdayError", "zipfile": "BadZipFile", "lzma": "LZMAError",
    "gzip": "BadGzipFile", "tarfile": "TarError ReadError", "threading": "BrokenBarrierError",
    "urllib.error": "URLError HTTPError", "zoneinfo": "ZoneInfoNotFoundError", "http.client": "HTTPException",
    "email.errors": "MessageError", "shutil": "Error SameFileError", "locale": "Error", "ssl": "SSLError",
})  # fmt: skip
_KNOWN = (*_TYPES, *_ERRORS)
"""Classes of Python's, by their places in here."""
# Values of Python's own that one argument makes again, and that argument.
_VALUES: tuple[tuple[tuple[str, str], Callable[[Any], Any]], ...] = (
    (("pathlib", "PosixPath"), str), (("pathlib", "PurePosixPath"), str), (("pathlib", "PureWindowsPath"), str),
    (("uuid", "UUID"), str), (("types", "MappingProxyType"), dict),
)  # fmt: skip
_VIEWS: tuple[tuple[type[Any], Callable[[list[Any]], Any]], ...] = (
    (type({}.keys()), lambda found: dict.fromkeys(found).keys()),
    (type({}.values()), lambda found: dict(enumerate(found)).values()),
    (type({}.items()), lambda found: dict(found).items()),
)
_NAMED_ERRORS = (AttributeError, ImportError, NameError)


def _found(names: tuple[str, str]) -> Any:
    module = sys.modules.get(names[0])
    return vars(module).get(names[1]) if module is not None else None


class _StandInType(type):
    """The type of stand-ins: calling one constructs an exception on the other side."""

    _handle: handles.Handle

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        """The name that our own text gave it, or what the other side says, as text."""
        name = vars(cls).get("_name")
        if name is None and "_handle" in vars(cls):
            return str(cls._handle.__name__)
        return str(name or type.__dict__["__name__"].__get__(cls))

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        if "_handle" not in vars(cls):  # derived here, and constructed here
            return super().__call__(*arguments, **keywords)
        made = cls._handle(*arguments, **keywords)
        if not isinstance(made, cls):
            cls._handle._codea1_peer.fail("a class of exceptions that makes something else")
        return made

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(cls._handle, name)


class _StandIn:
    """What all stand-ins have: the text of the original, and its attributes."""

    def __str__(self) -> str:
        told = vars(self).get("_message")
        return told if type(told) is str else BaseException.__str__(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        handle = vars(self).get("_original")
        return BaseException.__repr__(self) if handle is None else repr(handle)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        handle = vars(self).get("_original")
        if name.startswith("_") or handle is None:
            raise AttributeError(name)
        return getattr(handle, name)


def _bases(kinds: list[type]) -> tuple[type, ...]:
    """Those of some classes that no earlier one is derived from."""
    chosen: list[type] = []
    for kind in kinds:
        if not any(issubclass(each, kind) for each in chosen):
            chosen.append(kind)
    return tuple(chosen)


def _arguments(error: BaseException) -> tuple[Any, ...]:
    """Return what makes an exception of Python's own again, with the attributes that it keeps elsewhere."""
    if isinstance(error, OSError) and error.filename is not None:
        more = () if error.filename2 is None else (None, error.filename2)
        return (error.errno, error.strerror, error.filename, *more)
    if isinstance(error, BaseExceptionGroup):
        return (error.message, list(error.exceptions))
    json = sys.modules.get("json")
    if json is not None and type(error) is vars(json)["JSONDecodeError"]:
        return tuple(vars(error).get(name) for name in ("msg", "doc", "pos"))
    return tuple(BaseException.args.__get__(error))  # type: ignore[attr-defined]


def remade(value: Any) -> tuple[int, Any] | None:
    """Return the place of a value's class in our lists and what makes it again; None for other values."""
    if value is ... or value is NotImplemented:
        return len(_VALUES) + len(_VIEWS) + (value is NotImplemented), None
    for place, (view, _) in enumerate(_VIEWS):
        if type(value) is view:
            return place, list(value)
    for place, (names, content) in enumerate(_VALUES, start=len(_VIEWS)):
        if _found(names) is type(value):
            return place, content(value)
    return None


def remake(place: int, data: Any) -> Any:
    """Return the value of a place and what makes it again.

    Raises:
        DecodeError: It cannot be made.
        ValueError: Likewise.
    """
    if place < len(_VIEWS):
        if type(data) is not list:
            raise DecodeError("a malformed view")
        check_hashes([pair[0] for pair in data] if place == 2 else data if place == 0 else [])
        return _VIEWS[place][1](data)
    if place >= len(_VIEWS) + len(_VALUES):
        return (..., NotImplemented)[place - len(_VIEWS) - len(_VALUES)]
    names, content = _VALUES[place - len(_VIEWS)]
    kind = _found(names)
    if type(data) is not content or not isinstance(kind, type):
        raise DecodeError("a value that cannot be made again")
    return kind(data)


class Exceptions:
    """The exceptions and exception classes of a connection."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._apart: list[type] = []
        self._known: dict[Any, int] = {}
        self._classes: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._anonymous: dict[type[BaseException], type[BaseException]] = {}
        self._instances: weakref.WeakValueDictionary[int, BaseException] = (
            weakref.WeakValueDictionary()
        )

    # Ours, going out

    def set_apart(self, kind: type[BaseException]) -> None:
        """Let a class of Python's cross as one of ours: the program calls it by a name that the test uses.

        Else `except NegativeError` of a test would catch its own assertions, where that is another name of `Exception`.
        """
        if not any(kind is each for each in self._apart):
            self._apart.append(kind)

    def place(self, kind: type) -> int | None:
        """Return the place of a class of Python's in our list; None for others, and for those that are set apart."""
        return None if any(kind is each for each in self._apart) else self._place(kind)

    def _place(self, kind: type) -> int | None:
        if not self._known:  # most runs do without
            self._known = {found: place for place, found in enumerate(map(_found, _KNOWN)) if found}
        if kind not in self._known and getattr(kind, "__module__", "") != self._peer.home:
            for place, names in enumerate(_KNOWN):  # imported meanwhile
                if names[1] == kind.__name__ and _found(names) is kind:
                    self._known[kind] = place
        return self._known.get(kind)

    def class_data(self, kind: type[BaseException]) -> tuple[Any, ...]:
        """Return what goes with the number of a class of ours: places of Python's among its bases, and its own bases."""
        places = [self._place(base) for base in kind.__mro__ if issubclass(base, BaseException)]
        own = [
            base
            for base in kind.__bases__
            if issubclass(base, BaseException)
            and (self._place(base) is None or any(base is each for each in self._apart))
        ]
        return (tuple(place for place in places if place is not None), tuple(own))

    def data_of(self, error: BaseException) -> tuple[Any, ...]:
        """Return what goes with an exception: its class, text and arguments, and its cause."""
        arguments: Any = _arguments(error)
        try:
            self._peer.encode(arguments, counting=False)
        except EncodeError:
            arguments = (message_of(error),)
        name = error.name if isinstance(error, _NAMED_ERRORS) else None
        place = self.place(type(error))
        kind = type(error) if place is None else place
        return (kind, message_of(error), arguments, error.__cause__, name)

    # Theirs, coming in

    def at(self, place: int) -> type:
        """Return the class of Python's at a place of our list.

        Raises:
            DecodeError: There is none.
        """
        found = _found(_KNOWN[place]) if 0 <= place < len(_KNOWN) else None
        if not isinstance(found, type):
            raise DecodeError("no class that both sides know")
        return found

    @staticmethod
    def _error_at(place: int) -> type[BaseException] | None:
        found = _found(_KNOWN[place]) if len(_TYPES) <= place < len(_KNOWN) else None
        is_error = isinstance(found, type) and issubclass(found, BaseException)
        return found if is_error else None

    def stand_in(self, handle: handles.Handle, data: Any) -> type[BaseException]:
        """Return the class that stands for one of theirs."""
        number = handle._codea1_number
        known: type[BaseException] | None = self._classes.get(number)
        if known is not None:
            return known
        if (
            type(data) is not tuple
            or len(data) != 2
            or any(type(each) is not tuple for each in data)
        ):
            raise DecodeError("a malformed class")
        places, own = data
        numbered = all(type(place) is int for place in places)
        if not numbered or any(type(each) is not _StandInType for each in own):
            raise DecodeError("a class with strange bases")
        nearest = [kind for kind in map(self._error_at, places) if kind is not None] or [Exception]
        if len(self._classes) >= _MAX_CLASSES:
            gc.collect()  # classes are cycles
        if len(self._classes) >= _MAX_CLASSES:
            raise DecodeError(f"more than {_MAX_CLASSES} classes of exceptions")
        bases = _bases([*own, *nearest])
        made: Any = _StandInType(
            "ProgramError", bases if own else (_StandIn, *bases), {"_handle": handle}
        )
        self._classes[number] = made
        return cast("type[BaseException]", made)

    def _numbered(self, kind: type[BaseException]) -> type[BaseException]:
        """Return a class of Python's whose exceptions can be told apart."""
        if kind not in self._anonymous:
            self._anonymous[kind] = _StandInType(kind.__name__, (_StandIn, kind), {})  # type: ignore[assignment]
        return self._anonymous[kind]

    def instance(self, handle: handles.Handle | None, data: Any) -> BaseException:
        """Return the exception that stands for one of theirs."""
        error = self._instances.get(handle._codea1_number) if handle is not None else None
        if error is not None:
            return error
        if type(data) is not tuple or len(data) != 5:
            raise DecodeError("a malformed exception")
        kind, message, arguments, cause, name = data
        if type(kind) is int:  # one of Python's own
            kind = self._error_at(kind)
        is_kind = isinstance(kind, type) and issubclass(kind, BaseException)
        # Of what is not constructed here the text must come with it.
        says = (
            is_kind and kind.__module__ != "builtins" and kind.__str__ is not BaseException.__str__
        )
        if is_kind and (handle is not None or says) and type(kind) is not _StandInType:
            kind = self._numbered(kind)
        if not is_kind or type(message) is not str or type(arguments) is not tuple:
            raise DecodeError("a malformed exception")
        error = _construct(kind, arguments)
        if isinstance(error, _StandIn):
            vars(error)["_message"] = message
        if isinstance(cause, BaseException):
            error.__cause__ = cause
        if isinstance(error, _NAMED_ERRORS) and type(name) is str:
            error.name = name
        if handle is not None and isinstance(error, _StandIn):
            vars(error)["_original"] = handle
            self._instances[handle._codea1_number] = error
        return error


def original(error: BaseException) -> handles.Handle | None:
    """Return the handle of the exception of the other side that one of ours stands for."""
    found = vars(error).get("_original") if isinstance(error, _StandIn) else None
    return found if type(found) is handles.Handle else None


def class_handle(kind: type) -> handles.Handle | None:
    """Return the handle of the class of the other side that one of ours stands for."""
    found = vars(kind).get("_handle") if type(kind) is _StandInType else None
    return found if type(found) is handles.Handle else None


def name_class(kind: Any, name: str) -> None:
    """Give a stand-in the name by which our own text knows it."""
    if type(kind) is _StandInType:
        type.__setattr__(kind, "_name", name)


def _construct(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """Return an exception with these arguments. Constructors that look at them closely run only on what they expect."""
    real: Any = next(
        base for base in kind.__mro__ if type(base) is not _StandInType and base is not _StandIn
    )
    error = kind.__new__(kind, *arguments)
    if issubclass(real, UnicodeError):
        fits = len(arguments) == 5 and _is_place(*arguments[1:4])
    elif real.__name__ == "JSONDecodeError":
        fits = [*map(type, arguments)] == [str, str, int] and 0 <= arguments[2] <= len(arguments[1])
    else:
        fits = real.__module__ == "builtins"
    try:
        if fits:
            real.__init__(error, *arguments)
            return error
    except TypeError:  # it wants others
        pass
    error.args = arguments
    return error


def _is_place(text: Any, start: Any, end: Any) -> bool:
    plain = type(text) in (str, bytes) and type(start) is int and type(end) is int
    return plain and 0 <= start < end <= len(text)
