"""Values as JSON, and requests as values: Go's reading of JSON, so that what dockerd accepts is accepted here.

Go takes `null` for "not given", matches field names in any case, and lets a few lists of words be one word. msgspec
does none of that: `Reader` first brings a document into the shape that msgspec expects, then converts it strictly.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import msgspec
from msgspec import inspect

from husk.errors import InvalidParameter
from husk.text.documents import MalformedDocument, decode
from husk.text.json_faults import in_go_words
from husk.text.patterns import pattern

T = TypeVar("T")
Document = dict[str, object]

_encode = msgspec.json.Encoder().encode
_NO_TEXT = pattern("[\ud800-\udfff]")

# Go's strslice.StrSlice: `"Cmd": "true"` is `"Cmd": ["true"]`.
_WORD_OR_LIST = frozenset({"Cmd", "Entrypoint", "Shell", "CapAdd", "CapDrop"})


def encode(value: object) -> bytes:
    """The JSON of a value. Names of files need not be text: as in Go, each byte that is none becomes U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_as_text(msgspec.to_builtins(value)))


def _as_text(value: object) -> object:
    if isinstance(value, str):
        return _NO_TEXT.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_as_text(key): _as_text(item) for key, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list | tuple) else value


def parse_document(body: bytes, most: int = 0) -> Document:
    """A JSON object, or 400. As in Go, `null` leaves everything as it is: docker 20.10 commits with it.

    With `most`, it may have no more values than that.
    """
    try:
        document = decode(body, largest=len(body), most=most)
    except MalformedDocument as error:
        raise InvalidParameter(in_go_words(body, str(error))) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise InvalidParameter(f"invalid JSON: cannot unmarshal {_JSON_KINDS.get(kind, kind)} into an object")
    return document


_JSON_KINDS = {"list": "array", "str": "string", "bool": "bool", "int": "number", "float": "number"}


class Reader(Generic[T]):
    """Converts documents to one type; made once per type, as a constant of the module that reads it.

    The type is looked into with the first document: of the types that a daemon knows most stay unused for long.
    """

    def __init__(self, wanted: type[T]) -> None:
        if not issubclass(wanted, msgspec.Struct):
            raise TypeError(f"{wanted} is not a Struct")
        self._type = wanted

    @cached_property
    def _info(self) -> inspect.StructType:
        info = inspect.type_info(self._type)
        assert isinstance(info, inspect.StructType)
        return info

    @cached_property
    def _shape(self) -> "_Shape":
        return _shape(self._info)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of the type's fields, in small letters."""
        return frozenset(field.encode_name.lower() for field in self._info.fields)

    def read(self, document: Document) -> T:
        try:
            return msgspec.convert(self._shape(document), self._type)
        except msgspec.ValidationError as error:
            raise InvalidParameter(f"invalid JSON: {error}") from error

    def mentioned(self, document: Document) -> bool:
        """Tell if the document gives any field of this type."""
        return any(value is not None and key.lower() in self.fields for key, value in document.items())


_Shape = Callable[[object], object]


def _same(value: object) -> object:
    return value


def _shape(info: inspect.Type) -> _Shape:
    """A function that brings a value into the shape of the type; `_same` where there is nothing to do."""
    if isinstance(info, inspect.UnionType):
        others = [t for t in info.types if not isinstance(t, inspect.NoneType)]
        return _shape(others[0]) if len(others) == 1 else _same
    if isinstance(info, inspect.StructType):
        return _struct_shape(info)
    if isinstance(info, inspect.DictType):
        return _dict_shape(info)
    if isinstance(info, inspect.ListType):
        return _list_shape(info)
    if isinstance(info, inspect.IntType):
        return _int64
    return _same


def _int64(value: object) -> object:
    """Go's integers end where the kernel's do; what is larger would fail later, at start, with a stranger message."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidParameter(f"invalid JSON: cannot unmarshal number {value} into a field of type int64")
    return value


def _struct_shape(info: inspect.StructType) -> _Shape:
    fields = {field.encode_name.lower(): (field.encode_name, _shape(field.type)) for field in info.fields}

    def shape(value: object) -> object:
        if not isinstance(value, dict):
            return value
        result: Document = {}
        for key, item in value.items():
            if item is None or (known := fields.get(key.lower())) is None:
                continue
            name, inner = known
            result[name] = [item] if name in _WORD_OR_LIST and isinstance(item, str) else inner(item)
        return result

    return shape


def _dict_shape(info: inspect.DictType) -> _Shape:
    inner, zero = _shape(info.value_type), _zero(info.value_type)

    def shape(value: object) -> object:
        if not isinstance(value, dict) or (inner is _same and None not in value.values()):
            return value
        return {key: zero() if item is None else inner(item) for key, item in value.items()}

    return shape


def _list_shape(info: inspect.ListType) -> _Shape:
    inner, zero = _shape(info.item_type), _zero(info.item_type)

    def shape(value: object) -> object:
        if not isinstance(value, list) or (inner is _same and None not in value):
            return value
        return [zero() if item is None else inner(item) for item in value]

    return shape


_ZEROS: dict[type[inspect.Type], Callable[[], object]] = {
    inspect.StrType: str,
    inspect.IntType: int,
    inspect.FloatType: float,
    inspect.BoolType: bool,
    inspect.ListType: list,
    inspect.DictType: dict,
    inspect.StructType: dict,
}


def _zero(info: inspect.Type) -> Callable[[], object]:
    """Return a maker of the value that Go leaves where a map or a list holds `null`."""
    return _ZEROS.get(type(info), lambda: None)
