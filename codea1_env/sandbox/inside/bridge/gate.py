"""What the other side of a connection may do with an object of ours, and what may be handed to it.

Both sides are hostile. A test must not learn how a program is written (it could be valid on the reference and fail exactly
this program), nor run code inside the program's process other than by calling it. A program must not learn anything of a
test through a callback, nor call what would run its text there. So requests are served only on objects that were handed
over, and only for their public surface.
"""

from __future__ import annotations

import enum
import functools
import inspect
import io
import operator
import os
import sys
import types
from collections.abc import Iterator, MutableMapping
from typing import Any

from .bases import CONSTANT, CONTAINERS

# Public names that lead to the frame, the code or the globals behind an object.
_REVEALING = ("gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")
_OF_NAMED_TUPLES = frozenset({"_asdict", "_fields", "_make", "_replace"})
_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "hash", "hex", "isinstance", "issubclass", "iter",
    "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted", "sum",
})  # fmt: skip
# A test may hand functions of these to a program, which chooses the arguments.
_PURE_MODULES = frozenset({
    "math", "cmath", "operator", "_operator", "statistics", "json", "random", "time", "heapq", "_heapq", "bisect",
    "_bisect",
})  # fmt: skip
# And objects of these that can be called, or methods of objects.
_MODULES_OF_OBJECTS = frozenset({
    *_PURE_MODULES, "itertools", "functools", "_functools", "threading", "_thread", "queue", "_queue", "asyncio", "_asyncio",
    "collections", "_collections", "decimal", "fractions", "datetime", "unittest", "numpy", "re", "_io", "contextlib",
})  # fmt: skip
_NEVER_CALLED = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "input", "locals", "open",
    "setattr", "vars",
})  # fmt: skip
# Their classes do with any object what nobody may do with it from outside.
_MODULES_OF_TOOLS = ("_operator", "ctypes", "functools", "inspect", "operator", "weakref")
# What reads any attribute of its arguments: "{0.__globals__}". Methods of Python's classes, also where one of the program's
# is derived from them.
_FORMATTING = frozenset({
    "convert_field", "format", "formatMessage", "format_field", "format_map", "get_field", "get_value", "parse",
    "vformat",
})  # fmt: skip
# What a test may call that the program has imported: what these functions do, they do with their arguments alone.
_MODULES_OF_FUNCTIONS = _PURE_MODULES - {"random", "time"}
_MODULES_OF_CLASSES = frozenset({
    "array", "builtins", "collections", "_collections", "datetime", "decimal", "_decimal", "_pydecimal", "fractions",
    "ipaddress", "itertools", "queue", "_queue", "uuid", "zoneinfo",
})  # fmt: skip
# Whose methods a test may call.
_MODULES_OF_PROGRAMS = (_MODULES_OF_OBJECTS | {
    "abc", "_abc", "array", "builtins", "calendar", "configparser", "copy", "csv", "_csv", "dataclasses", "enum",
    "_collections_abc", "_decimal", "_pydecimal", "graphlib", "hashlib", "_hashlib", "_sha2", "_sha1", "_md5", "_blake2",
    "_sha3", "hmac", "html", "io", "ipaddress", "_json", "numbers", "pandas", "pathlib", "pprint", "sched", "secrets",
    "string", "struct", "_struct", "textwrap", "types", "typing", "uuid", "weakref", "_weakref", "_weakrefset",
    "zoneinfo", "argparse", "cmd", "concurrent", "difflib", "email", "urllib", "xml",
}) - {"unittest"}  # fmt: skip
# What arrays offer beside their values: their memory, files, and private attributes.
_OF_MEMORY = frozenset({
    "base", "byteswap", "ctypes", "data", "dump", "dumps", "flags", "getfield", "newbyteorder", "resize", "setfield",
    "setflags", "strides", "tofile", "view",
})  # fmt: skip
# What tables of pandas look up by names, compute out of texts, or write.
_OF_TABLES = frozenset({"agg", "aggregate", "apply", "eval", "pipe", "query", "transform"})
_TABLES = frozenset({"pandas"})
_TO_DATA = frozenset({
    "to_dict", "to_frame", "to_list", "to_numpy", "to_period", "to_pydatetime", "to_string", "to_timestamp",
})  # fmt: skip
# What sets attributes of what it is given, by names that it is told.
_SETTERS = (("argparse", "_ActionsContainer"), ("argparse", "Action"))
# Its methods open any descriptor of the process.
_LOOP = ("asyncio.events", "AbstractEventLoop")
_READING = (operator.attrgetter, operator.methodcaller)
_FILES = (io.StringIO, io.BytesIO)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_WITHOUT_LOOKING = frozenset({
    "aenter", "aexit", "bool", "enter", "eq", "exit", "format", "hash", "isinstance", "issubclass", "name", "ne", "repr", "str", "type",
})  # fmt: skip
FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial, functools._lru_cache_wrapper,
    staticmethod, operator.itemgetter, operator.attrgetter, operator.methodcaller, types.MethodWrapperType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip
"""They are all announced alike, and answer alike: which of them it is, is how a program is written."""
# What shows an address, where these are inherited from `object`.
_SHOWING = {
    "hash": ("__hash__",), "repr": ("__repr__",), "str": ("__repr__", "__str__"),
    "format": ("__repr__", "__str__", "__format__"),
}  # fmt: skip
_ITERATING = frozenset({"iter", "next", "send", "throw", "close", "aiter", "anext", "await"})


_WITH_FRAMES = (
    types.AsyncGeneratorType, types.CodeType, types.CoroutineType, types.FrameType, types.GeneratorType,
    types.TracebackType,
)  # fmt: skip


_OBJECT = (object,)
_OF_HANDLES = f"{__package__}.handles"
_SOME_OBJECT = (
    "<an object of the other process>"  # also of functions: what has `__call__` may be either
)


class RefusedError(Exception):
    """A request that is not served, or an object that does not leave."""


class Gate:
    """Decides which requests are served.

    Args:
        home: Name of the module that defines our side's classes: "program" or "test".
    """

    def __init__(self, home: str) -> None:
        self.home = home
        self._is_test = home == "test"
        self._offered: list[type] = []
        self._tested: Any = None

    def offer(self, kind: type) -> None:
        """Let a class of another module be called, which the program has under a name that the test uses."""
        self._offered.append(kind)

    def test(self, value: Any) -> None:
        """Let what stands under the tested name be called, wherever it comes from."""
        self._tested = value

    def _is_ours(self, value: Any) -> bool:
        return _class_of(value).__module__ == self.home

    def _is_known(self, module: Any) -> bool:
        return module == self.home or _is_in(module, _MODULES_OF_PROGRAMS)

    def may_export(self, value: Any) -> bool:
        """Whether a program's test may have something under its name.

        What the program has imported would do in its process what it does for whoever calls it: run text, or change
        what the program relies on. And a test would see how the program is written.
        """
        if isinstance(value, type):
            # What makes classes would make one with methods of the test's.
            harmless = not issubclass(value, type) and value is not super
            known = value.__module__ == self.home or _is_in(value.__module__, _MODULES_OF_CLASSES)
            return issubclass(value, BaseException) or (harmless and known)
        if not self.is_opaque(value):
            return not (type(value) is types.ModuleType or _is_of_process(value))
        inner = getattr(value, "__wrapped__", getattr(value, "pyfunc", value))  # numpy.vectorize
        if type(inner) is functools.partial:
            # Which functions it brings together was the program's choice.
            module = getattr(inner.func, "__module__", None)
            known = module == self.home or _is_in(module, _MODULES_OF_OBJECTS)
            return known or self._may_be_called(inner)
        owner = getattr(inner, "__self__", None)
        if type(inner) is types.MethodType or (
            owner is not None and type(owner) is not types.ModuleType
        ):
            return self._is_known(_class_of(owner).__module__)
        module = getattr(inner, "__module__", None)
        if module == "builtins":
            return getattr(inner, "__name__", "") in _PURE_BUILTINS
        return module == self.home or _is_in(module, _MODULES_OF_FUNCTIONS)

    def is_opaque(self, value: Any) -> bool:
        """Whether an object offers nothing but calls: functions, methods, partials, wrappers of all kinds."""
        return callable(value) and not isinstance(value, type) and not self._is_ours(value)

    def may_call(self, value: Any) -> bool:
        """Whether a test may call one of a program's names with plain data."""
        return not _is_tool(value)

    # What leaves

    def check_leaving(self, value: Any) -> None:
        """Refuse to hand over what nobody should hold from outside.

        Raises:
            RefusedError: It stays here.
        """
        if type(value) is types.ModuleType:
            raise RefusedError("a module")
        if not self._is_test and (
            _is_tool(value) or type(value) in _READING or _is_of_process(value)
        ):
            raise RefusedError("what makes classes, reads attributes or belongs to the process")
        if callable(value) and value is not self._tested and not self._may_be_called(value):
            raise RefusedError(
                f"a {type(value).__name__} that is neither the {self.home}'s own nor known to be harmless"
            )

    def _may_be_called(self, value: Any) -> bool:
        """Whether the other side may call something of this process with arguments that it chooses."""
        kind = type(value)
        if self._is_ours(value) or kind.__module__ == _OF_HANDLES:
            return True
        if kind is types.FunctionType:
            # A wrapper says the module of what it wraps.
            home = self.home in (value.__module__, value.__globals__.get("__name__"))
            return home or _is_in(value.__module__, _PURE_MODULES)
        if kind is types.MethodType:
            owner = value.__self__
            if self._is_ours(owner) or value.__func__.__module__ == self.home:
                return True
            if type(value.__func__) is types.BuiltinFunctionType:
                return self._may_be_called(value.__func__)
            return self._is_harmless(_class_of(owner))
        if kind in (staticmethod, classmethod):
            return self._may_be_called(value.__func__)
        if kind is functools.partial:
            return self._may_be_called(value.func)
        if kind is functools._lru_cache_wrapper:
            return self._may_be_called(value.__wrapped__)
        if kind is types.BuiltinFunctionType:
            return self._is_pure_builtin(value)
        if kind in (types.MethodDescriptorType, types.WrapperDescriptorType):
            return _is_plain(value.__objclass__) and not value.__name__.startswith("format")
        return isinstance(value, type) or self._is_harmless(kind)

    def _is_harmless(self, kind: type) -> bool:
        """Whether objects of a class may be called, and their methods. Of a program, where a test may call its methods."""
        module = kind.__module__
        known = _is_in(module, _MODULES_OF_OBJECTS) or (
            not self._is_test and self._is_known(module)
        )
        return module == self.home or known

    def _is_pure_builtin(self, value: Any) -> bool:
        owner = value.__self__
        if owner is None or type(owner) is types.ModuleType:
            if getattr(owner, "__name__", "") == "builtins":
                return value.__name__ in _PURE_BUILTINS
            return _is_in(value.__module__, _PURE_MODULES)
        kind = _class_of(owner)
        if issubclass(kind, str) and value.__name__.startswith("format"):
            return False
        return _is_plain(kind) or self._is_harmless(kind)

    # What is asked

    def check(self, name: str, target: Any, operands: tuple[Any, ...]) -> None:
        """Refuse what is not part of an object's public surface.

        Args:
            name: The operation.
            target: The object that was handed over.
            operands: The rest.

        Raises:
            RefusedError: It is refused.
        """
        if name == "call_with_names" and any(each.startswith("__") for each in operands[1]):
            raise RefusedError("no name of an argument is special")
        if name in ("call", "call_with_names"):
            self._check_call(name, target, operands)
        elif name in ("get", "set", "delete"):
            self._check_attribute(target, operands[0])
            if self._is_test and name != "get":
                _check_replaced(target, operands[0])
            changeable = self._is_ours(target) or type(target) is types.SimpleNamespace
            if name != "get" and not changeable:
                raise RefusedError("what is of a class of Python's is not changed")
        elif name == "await":
            if not inspect.isawaitable(target):
                raise RefusedError("only coroutines can be awaited")
        elif name not in _WITHOUT_LOOKING and type(target) not in FUNCTIONS:
            if self.is_opaque(target):
                raise RefusedError("a function offers nothing but calls")
            if self._is_test and not self._is_offered(target, name, operands):
                raise RefusedError("only objects of the test's own classes have operations here")

    def _check_call(self, name: str, target: Any, operands: tuple[Any, ...]) -> None:
        if type(target) is types.FunctionType:  # nearly always; none of what follows is about one
            return
        if isinstance(target, enum.EnumMeta) and (name != "call" or len(operands[0]) != 1):
            raise RefusedError("no class of members is made from outside")
        if _is_tool(target) or type(target) in _READING:
            raise RefusedError(
                "what makes classes, and what reads attributes, is not called from outside"
            )
        foreign = isinstance(target, type) and not self._is_ours(target)
        if not callable(target) or (foreign and not any(target is kind for kind in self._offered)):
            raise RefusedError("only functions and classes of its own can be called from outside")
        if type(target) is types.BuiltinFunctionType and target.__name__ in _NEVER_CALLED:
            raise RefusedError(f"{target.__name__} is not called from outside")

    def _check_attribute(self, target: Any, name: Any) -> None:
        if type(name) is not str or not name.isidentifier():
            raise RefusedError("no name of an attribute")
        kind = _class_of(target)
        of_named_tuple = issubclass(kind, tuple) and name in _OF_NAMED_TUPLES
        reveals = kind in _WITH_FRAMES and name.startswith(_REVEALING)
        if reveals or (name.startswith("_") and not of_named_tuple):
            raise RefusedError(f"the attribute {name!r:.80} is not public")
        if isinstance(target, types.ModuleType) or self.is_opaque(target):
            raise RefusedError("a function offers nothing but calls")
        # Most objects are of classes of its own, derived from nothing else: all of their attributes are.
        if (
            kind is target
            or self._is_test
            or kind.__mro__[1:] != _OBJECT
            or not self._is_ours(target)
        ):
            self._check_inherited(target, kind, name)
        if name == "mro" and kind is target:
            raise RefusedError("what a class is derived from is not shown")
        offered = self._is_ours(target) or kind in CONTAINERS or kind in _FILES
        offered = offered or (issubclass(kind, Iterator) and name == "keys")  # `dict` asks for it
        if self._is_test and not offered:
            raise RefusedError("only objects of the test's own classes have attributes here")

    def _check_inherited(self, target: Any, kind: type, name: str) -> None:
        bases = type.__dict__["__mro__"].__get__(kind)
        owner = next((base.__module__ for base in bases if name in vars(base)), None)
        if name in _FORMATTING and owner not in (None, self.home):
            raise RefusedError("text of the other side is formatted there")
        meta: Any = type(target).__mro__ if kind is target and owner is None else ()
        of_meta = next((base.__module__ for base in meta if name in vars(base)), self.home)
        if type(target) in (property, functools.cached_property) or of_meta != self.home:
            raise RefusedError("how a class is made is not shown")
        if self._is_test:
            # What a test case has of its framework would change how it judges.
            if owner != self.home and any(base.__module__ == "unittest.case" for base in bases):
                raise RefusedError(
                    "only methods that the test's own classes define can be used here"
                )
        elif not self._is_known(kind.__module__ if owner is None else owner):
            raise RefusedError(f"methods of the module {owner!r:.80} are not called from outside")
        elif name in _OF_MEMORY and any(base.__module__ == "numpy" for base in bases):
            raise RefusedError("the memory of an array is not shown")
        elif any((base.__module__, base.__name__) in _SETTERS for base in bases):
            raise RefusedError("it sets attributes by names that it is told")
        elif _is_in(owner, _TABLES) and _does_more(name):
            raise RefusedError("texts and names of the other side are not looked up in a table")

    def answer(self, name: str, target: object, operands: tuple[Any, ...], number: int) -> Any:
        """Answers what any object can be asked, also one that offers nothing but calls; NotImplemented for the rest.

        Args:
            name: The operation.
            target: The object.
            operands: The rest.
            number: The number that the other side knows the object by.
        """
        opaque = self.is_opaque(target)
        if name in _SHOWING:
            default, kind = vars(object), type(target)
            if opaque or all(getattr(kind, each) is default[each] for each in _SHOWING[name]):
                return number if name == "hash" else _SOME_OBJECT  # no address
        named = isinstance(target, type) or (self._is_test and type(target) is types.FunctionType)
        if name == "name" and not named:
            raise AttributeError("__name__")  # of a program's functions it is not shown
        if not opaque:
            return NotImplemented
        if name in ("eq", "ne"):
            other = operands[0]
            alike = type(other) is type(target) in FUNCTIONS and other == target
            return (other is target or alike) is (name == "eq")
        if name == "bool":
            return True
        if type(target) in FUNCTIONS:
            if name in ("copy", "deepcopy"):
                return target
            if name not in ("call", "call_with_names", "name"):
                raise TypeError(f"a function has no {name!r}")
        return NotImplemented

    def _is_offered(self, target: Any, name: str, operands: tuple[Any, ...]) -> bool:
        if self._is_ours(target) or any(map(self._is_ours, operands)):
            return True
        if type(target) in CONTAINERS or type(target) in (*_FILES, *_VIEWS):
            return True
        # `list` asks for a length, which an iterator says that it has not.
        asked = name in _ITERATING or name == "len"
        return asked and isinstance(target, (Iterator, types.AsyncGeneratorType))


def _does_more(name: str) -> bool:
    """Whether a method of a table does more than compute with plain data."""
    return name in _OF_TABLES or (name.startswith("to_") and name not in _TO_DATA)


def _is_of_process(value: Any) -> bool:
    """Whether a value is a stream, an event loop, the names of a module, or a variable of Python's own: `sys.path`."""
    if isinstance(value, (str, bytes, int, float, tuple, type(None))):
        return False
    if type(value) is dict and ("__builtins__" in value or "__spec__" in value):
        return True
    if any((base.__module__, base.__name__) == _LOOP for base in type(value).__mro__):
        return True
    is_stream = isinstance(value, io.IOBase) and not isinstance(value, _FILES)
    return is_stream or any(value is each for each in _variables())


@functools.cache
def _variables() -> tuple[Any, ...]:
    return tuple(
        each
        for module in (sys, os)
        for each in vars(module).values()
        if isinstance(each, (list, dict, set, MutableMapping))
    )


def _is_tool(kind: Any) -> bool:
    """Whether it is a class that does with any object what nobody may do from outside, makes classes, or shows memory."""
    if not isinstance(kind, type):
        return False
    arrays = ("numpy", "ndarray")
    of_arrays = any((base.__module__, base.__name__) == arrays for base in kind.__mro__)
    is_tool = kind.__module__ in _MODULES_OF_TOOLS and not issubclass(kind, BaseException)
    return issubclass(kind, type) or of_arrays or is_tool


def _check_replaced(target: Any, name: str) -> None:
    """Refuse to let a program change what a test's class does: `self.assertEqual = lambda *values: None`."""
    kinds = _class_of(target).__mro__
    found = next((vars(kind)[name] for kind in kinds if name in vars(kind)), None)
    of_class = callable(found) or isinstance(found, (classmethod, staticmethod))
    is_case = any(kind.__module__ == "unittest.case" for kind in kinds)
    if of_class or is_case or (isinstance(target, type) and found is not None):
        raise RefusedError("methods and classes of the test are not changed")


def _is_in(module: Any, modules: frozenset[str]) -> bool:
    return type(module) is str and module.partition(".")[0] in modules


def _class_of(value: Any) -> type:
    return value if isinstance(value, type) else type(value)


def _is_plain(kind: type) -> bool:
    return kind in CONSTANT or kind in CONTAINERS
