"""A table's x-ray, and the difference between two snapshots, for people: from the documents that programs get."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from lab.report import sections
from lab.report.sections import Section

Part = Mapping[str, Any]

VERSIONS = {
    1: "the first: data files alone; a row is deleted by rewriting its file",
    2: "adds row-level deletes: delete files say which rows of which older files are gone",
    3: "adds deletion vectors, row lineage (each row keeps an id), defaults and types; older readers fail",
}
KINDS = {
    "position-delete": "position delete: a file of (data file, row number) pairs that are gone (v2)",
    "equality-delete": "equality delete: rows equal to one of its keys are gone from files of lower sequence numbers",
    "deletion-vector": "deletion vector: a bitmap of row numbers gone from one data file, a blob in a Puffin file (v3)",
}
_FILES_IN_FULL = 3  # data files whose columns are shown one by one
_STATUS = ("added", "existing", "deleted")
_NAME = 30  # signs of a file's name that are shown: JSON has its whole path


def shown(found: Part) -> RenderableType:
    return sections.shown(_sections(found))


def markdown(found: Part) -> str:
    return sections.markdown(_sections(found))


def _sections(found: Part) -> list[Section]:
    return list(_diff(found) if found["type"] == "diff" else _xray(found))


# ---------------------------------------------------------------- the x-ray
def _xray(found: Part) -> Iterator[Section]:
    table, held = found["table"], found["snapshot"]
    place = table["location"]
    version = table["format_version"]
    file = table["metadata_location"].removeprefix(place).lstrip("/")
    facts = [
        f"location {place}",
        f"metadata {file}",
        f"last updated {_time(table['last_updated'])}",
        f"uuid {table['uuid']}",
    ]
    if table["last_sequence_number"]:
        facts.append(f"last sequence number {table['last_sequence_number']}")
    if table["next_row_id"] is not None:
        facts.append(f"next row id {table['next_row_id']}: rows to come are numbered from there")
    gloss = f"version {version}: {VERSIONS[version]}" if version in VERSIONS else ""
    yield Section(f"{table['name']} · Iceberg format version {version}", gloss, lines=facts, style="bold")
    yield from _declared(found)
    yield _snapshots(found)
    labels = _labels([*held["data_files"], *held["delete_files"]]) if held else {}
    if held is not None:
        yield from _held(found, held, labels)
    yield from _statistics(found, labels)
    yield _problems(found["problems"])


def _declared(found: Part) -> Iterator[Section]:
    table = found["table"]
    current = next(
        (s for s in found["schemas"] if s["id"] == table["current_schema_id"]),
        found["schemas"][-1],
    )
    others = [f"schema {s['id']} ({len(s['fields'])} columns)" for s in found["schemas"] if s is not current]
    defaults = any(f["initial_default"] is not None or f["write_default"] is not None for f in current["fields"])
    yield Section(
        f"Schema {current['id']}, the current one",
        "a column is known by its id: renaming it touches no file"
        + ("; initial default: what rows from before the column show; write default: what new rows get" * defaults),
        ("#id", "~column", "~type", "required", "key", "~initial default", "~write default", "~doc"),
        [
            (
                field["id"],
                field["name"],
                field["type"],
                field["required"],
                field["id"] in current["identifier_field_ids"],
                _value(field["initial_default"]),
                _value(field["write_default"]),
                field["doc"],
            )
            for field in current["fields"]
        ],
        [f"kept for older snapshots: {', '.join(others)}"] if others else (),
    )
    layout = [
        (f"partition spec {spec['id']}", spec["id"] == table["default_spec_id"], _fields(spec["fields"]))
        for spec in found["partition_specs"]
    ] + [
        (f"sort order {order['id']}", order["id"] == table["default_sort_order_id"], _fields(order["fields"]))
        for order in found["sort_orders"]
    ]
    yield Section(
        "Layout",
        "how new files are split and sorted; files keep the spec that they were written with",
        ("what", "default", "~fields"),
        layout,
    )
    if found["properties"]:
        yield Section("Properties", "", ("~name", "~value"), sorted(found["properties"].items()))
    if found["keys"]:
        yield Section(
            "Encryption keys",
            "ids alone; what they are wrapped in is never shown",
            ("key", "encrypted by"),
            [(key["key_id"], key["encrypted_by_id"]) for key in found["keys"]],
        )


def _fields(fields: Iterable[Part]) -> str:
    told = []
    for field in fields:
        source = ", ".join(name or f"column {number}" for name, number in zip(*_sources(field), strict=True))
        transform = str(field["transform"])
        name, bracket, argument = transform.partition("[")
        call = (
            source if transform == "identity" else f"{name}({argument.rstrip(']') + ', ' if bracket else ''}{source})"
        )
        order = f" {field['direction']} {field['null_order']}" if "direction" in field else f" as {field['name']}"
        told.append(call + order)
    return "; ".join(told) or "none"


def _sources(field: Part) -> tuple[Sequence[str | None], Sequence[int]]:
    return field["source"], field["source_ids"]


def _snapshots(found: Part) -> Section:
    names: dict[int, list[str]] = {}
    for ref in found["refs"]:
        if ref["type"] == "tag" or ref["name"] != "main":
            names.setdefault(ref["snapshot_id"], []).append(f"{ref['type']} {ref['name']}")
    rows = []
    above = None
    for snapshot in found["snapshots"]:
        parent = snapshot["parent_id"]
        marks = ["current"] if snapshot["id"] == found["table"]["current_snapshot_id"] else []
        marks += names.get(snapshot["id"], [])
        rows.append(
            (
                snapshot["id"],
                _time(snapshot["timestamp"]),
                snapshot["operation"],
                snapshot["sequence_number"] or "",
                "" if parent == above else parent or "none",  # where it is not the one above
                "\n".join(_summed(snapshot)),
                _row_ids(snapshot["first_row_id"], snapshot["added_rows"]),
                "\n".join(marks),
            )
        )
        above = snapshot["id"]
    return Section(
        "Snapshots",
        "each commit makes one, oldest first; seq orders them: a delete counts for files of a lower one",
        ("snapshot", "committed (UTC)", "operation", "#seq", "~parent", "what it did", "row ids", "~refs"),
        rows[-sections.MOST :],
        [f"the last {sections.MOST} of {len(rows)}"] if len(rows) > sections.MOST else [] if rows else ["none yet"],
    )


_DELETES = (
    ("dvs", "deletion vector"),
    ("position-delete-files", "position delete"),
    ("equality-delete-files", "equality delete"),
)


def _summed(snapshot: Part) -> list[str]:
    """What a snapshot's summary says it did; it is the writer's word, kept apart from what its files show."""
    summary = snapshot["summary"]
    told = []
    for sign, what in (("+", "added"), ("−", "deleted")):
        files, records = summary.get(f"{what}-data-files", "0"), summary.get(f"{what}-records", "0")
        if files != "0":
            told.append(f"{sign}{_count(files, 'file')} ({sign}{_count(records, 'row')})")
    for sign, what in (("+", "added"), ("−", "removed")):
        for key, name in _DELETES:
            if (files := summary.get(f"{what}-{key}", "0")) != "0":
                told.append(f"{sign}{_count(files, name)}")
    return told


def _row_ids(first: int | None, rows: int | None) -> str:
    if first is None:
        return ""
    if not rows:
        return f"from {first}" if rows is None else "none"
    return str(first) if rows == 1 else f"{first}–{first + rows - 1}"


# ---------------------------------------------------------------- a snapshot's files
def _held(found: Part, held: Part, labels: Mapping[Any, str]) -> Iterator[Section]:
    yield Section(f"Snapshot {held['id']}", lines=[_counted(held["rows"])], style="bold cyan")
    yield Section(
        "Manifests",
        "lists of files; a reader skips those that have nothing for it",
        ("manifest", "of", "#seq", "#lowest seq", "~files", "#bytes", "#spec", "#row id from"),
        [
            (
                _name(each["path"]),
                each["content"],
                each["sequence_number"],
                each["min_sequence_number"],
                ", ".join(
                    f"{each[f'{what}_files']} {what}"
                    for what in ("added", "existing", "deleted")
                    if each[f"{what}_files"]
                ),
                each["bytes"],
                each["spec_id"],
                each["first_row_id"],
            )
            for each in held["manifests"]
        ],
    )
    if held["data_files"]:
        yield _data_files("Data files", held["data_files"], labels)
    footers = {footer["path"]: footer for footer in found["parquet"]}
    for number, file in enumerate(held["data_files"][:_FILES_IN_FULL]):
        yield _columns(labels[_key(file)], file, footers.get(file["path"]), _BOUNDS if number == 0 else "")
    if held["delete_files"]:
        yield _delete_files("Delete files", held["delete_files"], labels)
    if held["removed_files"]:
        removed = [(file["kind"], _name(file["path"]), file["records"]) for file in held["removed_files"]]
        yield Section("Removed by this snapshot", "", ("kind", "file", "#rows"), removed)
    if found["unopened"]:
        yield Section(f"Footers of {found['unopened']} files were not opened", "--footers N opens more", style="dim")


def _labels(files: Iterable[Part]) -> dict[tuple[str, int | None], str]:
    """A short name for each file: D1 for the first data file, P, E and V for deletes by kind."""
    counts: dict[str, int] = {}
    labels = {}
    for file in files:
        letter = {"data": "D", "position-delete": "P", "equality-delete": "E", "deletion-vector": "V"}[file["kind"]]
        counts[letter] = counts.get(letter, 0) + 1
        labels[_key(file)] = f"{letter}{counts[letter]}"
    return labels


def _key(file: Part) -> tuple[str, int | None]:
    return file["path"], file["content_offset"]


def _counted(rows: Part) -> str:
    least, most = rows["live_at_least"], rows["live_at_most"]
    gone = [
        f"{rows[key]} {words}"
        for key, words in (
            ("by_deletion_vectors", "deleted by deletion vectors"),
            ("by_position_deletes", "named by position deletes"),
            ("equality_deletes", "keys in equality deletes"),
        )
        if rows[key]
    ]
    stored = f"{_count(rows['stored'], 'row')} in data files"
    if not gone:
        return f"{stored}, none deleted"
    live = f"{least}" if least == most else f"{least} to {most} (only a scan can tell)"
    return f"{stored}, {', '.join(gone)}: {live} left"


def _data_files(title: str, files: Sequence[Part], labels: Mapping[Any, str]) -> Section:
    return Section(
        title,
        "seq: deletes of a higher one count for it; row id from: for rows that bring no _row_id of their own (v3)",
        ("", "file", "in", "#rows", "size", "#seq", "#row id from", "~partition", "order", "status", "encrypted"),
        [
            (
                labels.get(_key(file), ""),
                _name(file["path"]),
                "" if file["path"].endswith(f".{file['format']}") else file["format"],
                file["records"],
                _size(file["bytes"]),
                file["sequence_number"],
                file["first_row_id"],
                _partition(file["partition"]),
                file["sort_order_id"] or "",
                file["status"],
                file["key_metadata_bytes"] is not None,
            )
            for file in files
        ],
    )


def _partition(values: Part) -> str:
    return "\n".join(f"{name}={_value(value) or 'null'}" for name, value in values.items())


_BOUNDS = "bounds: in the manifest, by which readers skip files; footer: the file's own, where they differ"


def _columns(label: str, file: Part, footer: Part | None, gloss: str) -> Section:
    """A data file's columns as the manifest and the file itself tell them, side by side."""
    inside = {chunk["field_id"]: chunk for chunk in reversed(footer["columns"])} if footer else {}
    rows = []
    for told in file["columns"]:
        chunk = inside.pop(told["field_id"], None)
        rows.append(_column(told["column"] or f"id {told['field_id']}", told, chunk))
    for chunk in reversed(inside.values()):
        rows.append(_column(chunk["column"], {}, chunk))
    head = f"Columns of {label}"
    lines = []
    if footer:
        groups = _count(len(footer["row_groups"]), "row group")
        lines.append(f"Parquet by {footer['created_by'] or 'somebody who does not tell'}, {groups}")
    else:
        why = "its footer was not opened" if file["format"] == "parquet" else f"{file['format']} files are not opened"
        lines.append(f"{why}; what stands here is the manifest's")
    return Section(
        head,
        gloss,
        ("~column", "encoding", "codec", "#page v", "#values", "#nulls", "~bounds", "~footer", "bloom"),
        rows,
        lines,
    )


def _column(name: str, told: Part, chunk: Part | None) -> tuple[Any, ...]:
    bounds = _range(told.get("lower"), told.get("upper"))
    footer = _range(chunk["min"], chunk["max"]) if chunk else ""
    chunk = chunk or {}
    values, nulls = told.get("values"), told.get("nulls")
    return (
        name,
        chunk.get("encoding"),
        chunk.get("codec"),
        chunk.get("page_version"),
        chunk.get("values") if values is None else values,
        chunk.get("nulls") if nulls is None else nulls,
        bounds,
        "" if footer == bounds else footer,
        chunk.get("bloom_filter"),
    )


def _range(lower: Any, upper: Any) -> str:
    if lower is None and upper is None:
        return ""
    low, high = _value(lower), _value(upper)
    return low if low == high else f"{low} … {high}"


def _delete_files(title: str, files: Sequence[Part], labels: Mapping[Any, str]) -> Section:
    return Section(
        title,
        "\n".join(KINDS[kind] for kind in KINDS if any(file["kind"] == kind for file in files)),
        ("", "kind", "file", "#rows", "#seq", "~deletes from", "where", "status"),
        [
            (
                labels.get(_key(file), ""),
                file["kind"],
                _name(file["path"]),
                file["records"],
                file["sequence_number"],
                _deletes_from(file, labels),
                _where(file),
                file["status"],
            )
            for file in files
        ],
    )


def _deletes_from(file: Part, labels: Mapping[Any, str]) -> str:
    if file["kind"] == "equality-delete":
        return f"rows with the same {', '.join(name or '?' for name in file['equality_columns'])}"
    if file["target_data_file"] is None:
        return "whichever files it names"
    target = labels.get((file["target_data_file"], None))
    return target or _name(file["target_data_file"])


def _where(file: Part) -> str:
    if file["content_offset"] is None:
        return ""
    return f"{file['content_size_in_bytes']} bytes at {file['content_offset']}"


def _statistics(found: Part, labels: Mapping[Any, str]) -> Iterator[Section]:
    if found["puffin"]:
        rows = [
            (
                _name(file["path"]),
                blob["type"],
                blob["offset"],
                blob["length"],
                blob["cardinality"],
                _properties(blob["properties"], labels),
            )
            for file in found["puffin"]
            for blob in file["blobs"]
        ]
        yield Section(
            "Puffin footers",
            "blobs: deletion vectors (rows as counted in the bitmap), or statistics, as sketches of values",
            ("file", "blob", "#offset", "#bytes", "#rows", "~properties"),
            rows,
        )
    if found["statistics"]:
        yield Section(
            "Statistics files",
            "hints for planners; a reader may do without",
            ("kind", "file", "snapshot", "#size", "#blobs"),
            [
                (
                    file["kind"],
                    _name(file["path"]),
                    file["snapshot_id"],
                    _size(file["bytes"]),
                    len(file["blobs"]),
                )
                for file in found["statistics"]
            ],
        )


def _properties(properties: Part, labels: Mapping[Any, str]) -> str:
    return "\n".join(
        f"{key.removeprefix('referenced-')}={labels.get((value, None)) or _name(str(value))}"
        for key, value in properties.items()
    )


def _problems(problems: Sequence[str]) -> Section:
    if not problems:
        checked = "summary, manifests, footers and bitmaps agree on counts; checksums and row ids are in order"
        return Section("Everything that was looked at adds up", checked, style="green")
    return Section("What does not add up", lines=problems, style="bold red")


# ---------------------------------------------------------------- the difference
def _diff(found: Part) -> Iterator[Section]:
    one, other = found["from"], found["to"]
    yield Section(
        f"{found['table']['name']}: from snapshot {one['id']} to {other['id']}", lines=list(_told(found)), style="bold"
    )
    labels = _labels([*found["data_files"]["removed"], *found["data_files"]["added"]])
    deletes = found["delete_files"]
    labels |= _labels([*deletes["removed"], *deletes["added"]])
    for what in ("added", "removed"):  # by which snapshot is told above
        if files := [{**file, "status": ""} for file in found["data_files"][what]]:
            yield _data_files(f"Data files {what}", files, labels)
    for what in ("added", "removed"):
        if files := [{**file, "status": ""} for file in deletes[what]]:
            yield _delete_files(f"Delete files {what}", files, labels)
    changes = list(_changes(found["changes"]))
    if found["changes"] is None:
        unknown = "not known any more: the metadata file of that time is gone (write.metadata.previous-versions-max)"
        changes = [f"schema and properties: {unknown}"]
    yield Section(
        "Table",
        "schema, properties and refs, as each commit left them",
        lines=changes or ["schema, properties and layout stayed as they were"],
    )
    if since := list(_changes(found["since"])):
        yield Section("After the last commit", "changes that no snapshot shows", lines=since)


def _told(found: Part) -> Iterator[str]:
    """The difference in sentences."""
    if not found["ancestor"]:
        yield "the first is no ancestor of the second: this compares what each holds, not what commits did"
    for snapshot in found["between"]:
        summed = ", ".join(_summed(snapshot))
        yield (
            f"{_time(snapshot['timestamp'])} {snapshot['operation']}, sequence number {snapshot['sequence_number']}"
            + (f": {summed}" if summed else "")
        )
    before, after = found["rows"]["from"], found["rows"]["to"]
    yield f"rows: {_live(before)} → {_live(after)}"
    data, deletes = found["data_files"], found["delete_files"]
    yield (
        f"data files: {len(data['added'])} added ({_count(_records(data['added']), 'row')}), "
        f"{len(data['removed'])} removed ({_count(_records(data['removed']), 'row')}), {data['kept']} kept"
    )
    if data["added"] and data["removed"]:
        if {snapshot["operation"] for snapshot in found["between"]} == {"replace"}:
            yield "a compaction: the same rows in other files"
        else:
            yield "copy-on-write: whole files were written anew, and the rows in them that stayed were copied"
    replaced = {file["target_data_file"]: file for file in deletes["removed"] if file["kind"] == "deletion-vector"}
    if deletes["added"] and not data["removed"]:
        yield "merge-on-read: the data files stay, and delete files say which of their rows are gone"
    for file in deletes["added"]:
        yield _deleting(file, replaced)
    gone = [file for file in deletes["removed"] if not _follows(file, deletes["added"])]
    if gone:
        yield (
            f"{_count(len(gone), 'delete file')} no longer needed: the rows, or their files, are gone from the table"
        )


def _deleting(file: Part, replaced: Mapping[str | None, Part]) -> str:
    rows, target = _count(file["records"], "row"), _name(str(file["target_data_file"]))
    match file["kind"]:
        case "deletion-vector":
            earlier = replaced.get(file["target_data_file"])
            instead = f", instead of one with {_count(earlier['records'], 'row')}" if earlier else ""
            return f"a deletion vector takes {rows} from {target}{instead} ({_where(file)} in its Puffin file)"
        case "equality-delete":
            names = ", ".join(name or "?" for name in file["equality_columns"])
            return (
                f"an equality delete takes every row whose {names} is one of {_count(file['records'], 'key')}, from "
                f"files with a sequence number below {file['sequence_number']}"
            )
    from_ = f"from {target}" if file["target_data_file"] else "from the files that it names"
    return f"a position delete file takes {rows} {from_}"


def _follows(file: Part, added: Sequence[Part]) -> bool:
    target = file["target_data_file"]
    return target is not None and any(each["target_data_file"] == target for each in added)


def _records(files: Iterable[Part]) -> int:
    return sum(file["records"] for file in files)


def _live(rows: Part) -> str:
    least, most = rows["live_at_least"], rows["live_at_most"]
    return str(least) if least == most else f"{least} to {most} (only a scan can tell)"


def _changes(changes: Part | None) -> Iterator[str]:
    if changes is None:
        return
    if version := changes["format_version"]:
        yield f"format version {version['from']} → {version['to']}: older readers may not know it"
    if moved := changes["location"]:
        yield f"location {moved['from']} → {moved['to']}"
    for change in changes["schema"]:
        yield _schema_change(change)
    for key, name in (("partition_spec", "partitioned by"), ("sort_order", "sorted by")):
        if pair := changes[key]:
            before, after = _fields(pair["from"] or ()), _fields(pair["to"] or ())
            yield f"{name} {before} → {after}; files from before stay as they are"
    for key, pair in changes["properties"].items():
        yield f"property {key}: {_or_none(pair['from'])} → {_or_none(pair['to'])}"
    for name, pair in changes["refs"].items():
        if name != "main":
            yield f"ref {name}: {_or_none(pair['from'])} → {_or_none(pair['to'])}"


def _schema_change(change: Part) -> str:
    name, old, new = change["column"], change["from"], change["to"]
    match change["change"]:
        case "added":
            default = new["initial_default"]
            reads = "null" if default is None else _value(default)
            return f"column {name} added (id {change['field_id']}, {new['type']}): rows from before read as {reads}"
        case "dropped":
            return f"column {name} dropped (id {change['field_id']}): files keep it, nobody reads it"
        case "renamed":
            return f"column {old} is now called {new} (id {change['field_id']} stays, so no file changes)"
        case "reordered":
            return f"columns reordered: {', '.join(new)}"
        case "required":
            return f"column {name} is {'required' if new else 'optional'} now"
        case "type":
            return f"column {name}: type {old} → {new}"
    return f"column {name}: {change['change'].replace('_', ' ')} {_or_none(old)} → {_or_none(new)}"


# ---------------------------------------------------------------- words
def _or_none(value: Any) -> str:
    return "not set" if value is None else _value(value)


def _value(value: Any, most: int = 40) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text[10:11] == "T" and "." in text:  # a timestamp: its zeros say nothing
        text = re.sub(r"\.0+(?=\+|$)", "", text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _name(path: str) -> str:
    """A file's name without its folders, which say no more than its partition; of a long one, its two ends."""
    text = path.rpartition("/")[2]
    return text if len(text) <= _NAME else f"{text[:9]}…{text[10 - _NAME :]}"


def _time(stamp: str | None) -> str:
    return stamp[:19].replace("T", " ") if stamp else ""


def _size(number: int | None) -> str:
    if number is None:
        return ""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"


def _count(number: int | str, name: str) -> str:
    return f"{number} {name}" if str(number) == "1" else f"{number} {name}s"
