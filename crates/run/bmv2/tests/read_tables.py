"""Reads all tables of a switch with `finsy`, a P4Runtime client that nobody here wrote, and compares them
with what the driver says that it wrote: JSON on stdin. Prints each difference; the last line says how much
was the same.

The driver stays the primary controller: this one asks with a lower election id.
"""

import asyncio
import json
import sys

import finsy


def number(value):
    """A field's value, which finsy gives as a number or as text."""
    if isinstance(value, int):
        return value
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    return int(str(value), 0)


def written(entry, schema):
    """An entry as the driver tells it: table, key, action, arguments."""
    table = schema.tables[entry["table"]]
    action = schema.actions[entry["action"]]
    named = lambda fields, values: tuple(zip([field.name for field in fields], values))
    return (
        table.name,
        named(table.match_fields, entry["key"]),
        action.name,
        named(action.params, entry["data"]),
    )


def held(entry, schema):
    """An entry as the switch tells it."""
    table = schema.tables[entry.table_id]
    action = schema.actions[entry.action.name]
    key = tuple((field.name, number(entry.match[field.alias])) for field in table.match_fields)
    data = tuple((param.name, number(entry.action.args[param.name])) for param in action.params)
    return table.name, key, action.name, data


async def compare(told_by_driver):
    options = finsy.SwitchOptions(device_id=told_by_driver["device"], initial_election_id=1)
    switch = finsy.Switch("other", told_by_driver["at"], options)
    differences = []
    async with switch:
        assert not switch.is_primary, "the driver is the primary controller"
        schema = switch.p4info
        ours = {written(entry, schema) for entry in told_by_driver["entries"]}
        read = set()
        async for entry in switch.read(finsy.P4TableEntry()):
            # Rows of the program itself, and what happens without an entry.
            if not schema.tables[entry.table_id].is_const and not entry.is_default_action:
                read.add(held(entry, schema))
        differences += [f"only the driver knows {entry}" for entry in sorted(ours - read)]
        differences += [f"only the switch has {entry}" for entry in sorted(read - ours)]
        async for entry in switch.read(finsy.P4TableEntry("replies.life", is_default_action=True)):
            epoch = [number(value) for value in entry.action.args.values()]
            if epoch != [told_by_driver["epoch"]]:
                differences.append(f"the switch is of epoch {epoch}")
        try:
            await switch.delete_all()
            differences.append("a controller that is not the primary may delete entries")
        except finsy.P4ClientError as why:
            refused = why.code.name
    tables = {entry[0] for entry in ours & read}
    same = f"{len(ours & read)} entries of {len(tables)} tables are the same; to delete them: {refused}"
    print("\n".join(differences + [same]))
    return not differences


sys.exit(0 if asyncio.run(compare(json.load(sys.stdin))) else 1)
