"""Compares our `.proto` files, as a set of descriptors on stdin, with the published ones that `finsy` brings:
each field of ours must have the published name, number, kind on the wire and label.
"""

import sys

from finsy.proto import p4i, p4r
from google.protobuf import descriptor_pb2, descriptor_pool

# A message that is passed on as bytes, or has other fields here, is the same on the wire.
LENGTH_DELIMITED = {9, 11, 12}
OWN_NAMES = {"google.rpc.Detail": "google.protobuf.Any"}


def fields(message, prefix):
    name = f"{prefix}.{message.name}"
    for field in message.field:
        yield name, field
    for nested in message.nested_type:
        yield from fields(nested, name)


def values(enum, prefix):
    for value in enum.value:
        yield f"{prefix}.{enum.name}", value


def enums(message, prefix):
    name = f"{prefix}.{message.name}"
    for enum in message.enum_type:
        yield from values(enum, name)
    for nested in message.nested_type:
        yield from enums(nested, name)


def kind(number):
    return 12 if number in LENGTH_DELIMITED else number


ours = descriptor_pb2.FileDescriptorSet.FromString(sys.stdin.buffer.read())
published = descriptor_pool.Default()
assert p4i and p4r, "their files are in the pool"
count = 0
for file in ours.file:
    for message in file.message_type:
        for name, field in fields(message, file.package):
            theirs = published.FindMessageTypeByName(OWN_NAMES.get(name, name))
            known = theirs.fields_by_name[field.name]
            same = (known.number, kind(known.type)) == (field.number, kind(field.type))
            repeated = field.label == field.LABEL_REPEATED
            assert same and known.is_repeated == repeated, f"{name}.{field.name}"
            count += 1
        for name, value in enums(message, file.package):
            known = published.FindEnumTypeByName(name).values_by_name[value.name]
            assert known.number == value.number, f"{name}.{value.name}"
    for service in file.service:
        theirs = published.FindServiceByName(f"{file.package}.{service.name}")
        for method in service.method:
            known = theirs.methods_by_name[method.name]
            assert f".{known.input_type.full_name}" == method.input_type, method.name
            assert f".{known.output_type.full_name}" == method.output_type, method.name
print(f"{count} fields are the published ones")
