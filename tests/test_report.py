"""Reports show data as it is."""

from __future__ import annotations

import io

from rich.console import Console

from lab.model import Cause, Column, Failure, Rows
from lab.report import state
from lab.report.line import short


def shown(what: object) -> str:
    console = Console(file=io.StringIO(), width=120, markup=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_brackets_in_names_and_values_are_data() -> None:
    text = shown(state.rows(Rows((Column("[bold]c[/x]", "VARCHAR[]"),), (("[/red]",), (None,)))))
    assert "[bold]c[/x]" in text
    assert "VARCHAR[]" in text
    assert "[/red]" in text
    assert "2 rows" in text


def test_a_cause_in_short_has_no_stack_of_native_code() -> None:
    assert short("IO Error: no such file\n\nStack Trace:\n\n/lib/duckdb.so(_ZN6duckdb9Exception) [0x7f]") == (
        "IO Error: no such file"
    )


def test_a_chain_keeps_every_class_and_message() -> None:
    text = shown(state.chain(Failure((Cause("a.Outer", "one [x]"), Cause("b.Inner", "two")))))
    assert text.splitlines() == ["a.Outer: one [x]", "Caused by: b.Inner: two"]
