"""Explores every interleaving of the actors' steps, breadth first, so traces are shortest."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.protocol.invariants import violations
from tests.protocol.model import Actor, Protocol, World
from tests.protocol.operations import crash
from tests.protocol.turn import Operation, Turn

Program = tuple[Operation, ...]
WHOLE = Protocol()


class Scenario(NamedTuple):
    """A history, performed one operation after another, and the programs that then run at once."""

    name: str
    history: Program
    programs: tuple[Program, ...]
    crashes: int = 0


class Found(NamedTuple):
    """A state that violates an invariant, and the steps that lead to it from the scenario's
    start."""

    violation: str
    trace: tuple[str, ...]


class Explored(NamedTuple):
    """The size of an exploration, and the violation that ended it."""

    states: int
    transitions: int
    seconds: float
    found: Found | None


def explore(
    scenario: Scenario, protocol: Protocol = WHOLE, states_max: int = 2_000_000
) -> Explored:
    """Explore all reachable states, until one violates an invariant."""
    started = time.perf_counter()
    start = start_of(scenario, protocol)
    came: dict[World, tuple[World, str] | None] = {start: None}
    waiting, transitions = deque([start]), 0
    sound: set[object] = set()

    def result(found: Found | None) -> Explored:
        return Explored(len(came), transitions, time.perf_counter() - started, found)

    while waiting:
        world = waiting.popleft()
        facts = world._replace(actors=(), ended=frozenset(), mark=0, crashes_left=0)
        if facts not in sound:
            problem = next(violations(world, protocol), None)
            if problem is not None:
                return result(Found(problem, _trace(came, world)))
            sound.add(facts)
        for label, after in moves(world, scenario.programs, protocol):
            transitions += 1
            if after not in came:
                came[after] = (world, label)
                waiting.append(after)
        if len(came) > states_max:
            raise AssertionError(f"{scenario.name} has more than {states_max} states.")
    return result(None)


def moves(
    world: World, programs: Sequence[Program], protocol: Protocol
) -> Iterator[tuple[str, World]]:
    """Yield (label, next world) for each possible step of each actor, crashes included."""
    for index, actor in enumerate(world.actors):
        if actor.dead or actor.operation >= len(programs[index]):
            continue
        turn = Turn(world, index, protocol)
        operation = programs[index][actor.operation]
        for label, after in operation.moves(turn):
            yield f"{index}: {describe(operation)} {label}", after
        if world.crashes_left and actor.step:
            yield f"{index}: {describe(operation)} crashes", crash(turn)


def start_of(scenario: Scenario, protocol: Protocol) -> World:
    """Return the world after the history, which runs under the whole protocol and is sound."""
    world = World()
    for number, operation in enumerate(scenario.history):
        world = world._replace(actors=(Actor(operation=-1 - number),))
        while world.actors[0].operation == -1 - number:
            world = next(iter(operation.moves(Turn(world, 0, Protocol()))))[1]
    actors = tuple(Actor() for _ in scenario.programs)
    return world._replace(
        actors=actors, crashes_left=scenario.crashes, ended=frozenset(), dropped=frozenset()
    )


def describe(operation: Operation) -> str:
    """Return the operation's name and its facts: INSERT s a1; REPLAY t; CREATE w."""
    facts: list[str] = []
    for fact in operation:
        if isinstance(fact, str) and fact:
            facts.append(fact)
        elif isinstance(fact, tuple):
            facts.append("".join(fact))
    if getattr(operation, "reads_dimension", False):
        facts.append("reading d")
    if getattr(operation, "discard_bypass", False):
        facts.append("discarding bypass")
    if getattr(operation, "steps_back", False):
        facts.append("stepping back")
    name = type(operation).__name__.upper()
    return " ".join([*([] if name == "CHANGEVIEW" else [name]), *facts])


def _trace(came: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    steps: list[str] = []
    at = came[world]
    while at is not None:
        steps.append(at[1])
        at = came[at[0]]
    return tuple(reversed(steps))
