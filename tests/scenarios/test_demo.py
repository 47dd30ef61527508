"""The example end to end, as `make demo` runs it, with each of its numbers computed by pandas."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb

ROOT = Path(__file__).parents[2]
DEMO = ("example_project/demo.py", "--check")
SECONDS_MAX = 900
"""Longer than the demo's promise (4 minutes on two idle cores), since tests share their machine."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(SECONDS_MAX),
    pytest.mark.feature("views"),
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "warehouse"


@pytest.fixture(scope="module")
def output(warehouse: Path) -> str:
    """Run the demo, require success and return its output."""
    done = subprocess.run(
        [sys.executable, *DEMO, "--warehouse", str(warehouse)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def test_make_demo_runs_it() -> None:
    """CI runs the demo here, and not once more by make."""
    make = ["make", "--dry-run", "--no-print-directory", "demo"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split()[1:] == list(DEMO)


def test_it_ends_with_every_number_checked(output: str) -> None:
    assert "Every number was checked." in output
    assert re.search(r"\bNO\b(?!-OP)", output) is None  # exposures are NO-OP


def test_history_is_the_nine_months_of_the_file(output: str) -> None:
    assert re.search(r"raw\.flights\s+252,484\s", output)


def test_nine_chunks_are_published_for_each_view(output: str) -> None:
    for model in (
        "hourly_departures",
        "daily_carrier_delay",
        "monthly_carrier_aircraft",
        "departures_named",
        "daily_departures",
        "monthly_departures",
    ):
        chunks = re.findall(rf"{model}: chunk \d of 9, partition (\d+)", output)
        assert sorted(chunks) == [f"2013{month:02}" for month in range(1, 10)], model


def test_drift_is_named_and_repaired(output: str) -> None:
    drift = output[output.index("4. Drift") : output.index("5. The answer")]
    failed, repaired, discarded = re.split(r"^dbt run-operation repair", drift, flags=re.MULTILINE)
    assert re.search(r"hourly_departures, partition 201307: DELETE.*keys.*LGA, 2013-07-04", failed)
    assert re.search(r"hourly_departures, partition 201311: .*\(JFK, 2013-11-28, 12\)", failed)
    assert _has_line(repaired, "hourly_departures", "201307", "replayed")
    assert _has_line(repaired, "hourly_departures", "201311", "bypass kept")
    assert _has_line(discarded, "hourly_departures", "201311", "bypass discarded")


def _has_line(text: str, *words: str) -> bool:
    """Return whether a line of the text has all the words."""
    return any(all(word in line for word in words) for line in text.splitlines())


def test_the_model_answers_from_fewer_rows(output: str) -> None:
    answer = output[output.index("5. The answer") :]
    (of_source,) = re.findall(r"raw\.flights\s+([\d,]+)\s", answer)
    (of_model,) = re.findall(r"analytics\.daily_departures\s+([\d,]+)\s", answer)
    assert int(of_source.replace(",", "")) == 336_745
    assert int(of_model.replace(",", "")) < 5_000


def test_the_warehouse_that_it_leaves_is_sound(output: str, warehouse: Path) -> None:
    with olapdb.connect(warehouse) as connection:
        verdicts = connection.execute("SELECT name, verdict FROM system.views").fetchall()
        assert len(verdicts) == 7
        assert {verdict for _, verdict in verdicts} == {"proven"}
        months = connection.execute(
            "SELECT toYYYYMM(flight_date) AS month, count() FROM raw.flights "
            "GROUP BY month ORDER BY month"
        ).fetchall()
    assert [rows for _, rows in months] == [
        27004,
        24951,
        28834,
        28330,
        28796,
        28243,
        29394,
        29327,
        27574,
        28889,
        27268,
        28135,
    ]
