"""The house: arrows point down, the two towers never meet, symbols have one maker."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "costmodel"

# A module imports only from floors below its own; files of one folder may import each other. The README draws this map.
FLOORS = {
    "common": 0,
    "symbols": 1, "exact": 1,
    "tables": 2, "operation": 2, "passes": 2, "program": 2, "hardware": 2,
    "ops": 3, "evaluate": 3,
    "layers": 4,
    "model": 5,
    "roofline": 6, "zoo": 6,
    "calibration": 7, "caching": 7, "generation": 7, "paging": 7, "parallel": 7, "quantization": 7, "sampling": 7,
    "speculation": 7,
    "sizing": 8,
    "textbook": 9, "quantities": 9, "evidence": 9, "host": 9, "serving": 9,
    "__init__": 10, "explore": 10,
    "cli": 11, "plotting": 11, "__main__": 12,
}  # fmt: skip
TECHNIQUES = {room for room, floor in FLOORS.items() if floor == 7}  # one technique each: never import each other


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


MODULES = list(modules())


def room(module: str) -> str:
    return module.split(".")[0]


def imports(path: Path) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node, node.module or ""
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)


def inner(path: Path) -> Iterator[str]:
    for node, name in imports(path):
        if name == "costmodel":
            yield from (alias.name if alias.name in FLOORS else "__init__" for alias in node.names)
        elif name.startswith("costmodel."):
            yield name.removeprefix("costmodel.")


@pytest.mark.parametrize(("path", "module"), MODULES, ids=lambda x: x if isinstance(x, str) else "")
def test_arrows_point_down(path: Path, module: str) -> None:
    if room(module) == "lab":
        assert {room(name) for name in inner(path)} <= {"lab", "common"}
        return
    for name in inner(path):
        assert room(name) != "lab" or room(module) in ("cli", "plotting", "explore"), (
            f"{module} imports the other tower: {name}"
        )
        below = room(name) == "lab" or FLOORS[room(name)] < FLOORS[room(module)]
        assert below or room(name) == room(module), f"{module} imports {name}, which is not below it"
        assert not ({room(name), room(module)} <= TECHNIQUES and room(name) != room(module))


@pytest.mark.parametrize(("path", "module"), MODULES, ids=lambda x: x if isinstance(x, str) else "")
def test_house_rules(path: Path, module: str) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), "star import"
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            assert called not in ("symbols", "Dummy", "Wild", "parse_expr", "exec", "eval"), called
            assert called != "Symbol" or module == "symbols", "symbols are made in symbols.py alone"
            text = called == "sympify" and any(isinstance(a, ast.Constant | ast.JoinedStr) for a in node.args)
            assert not text, "sympify of text"
    assert len(path.read_text().splitlines()) <= 250
    if room(module) == "lab":
        assert not any(name.split(".")[0] == "sympy" for _, name in imports(path))
    if room(module) == "common":
        assert not any(name.split(".")[0] == "sympy" for _, name in imports(path))


def test_every_room_has_a_floor() -> None:
    assert {room(module) for _, module in MODULES} - {"lab"} == set(FLOORS)


def test_importing_is_light() -> None:
    heavy = ("matplotlib", "pandas", "xarray", "scipy", "tabulate", "tomllib", "IPython", "torch")
    code = f"import sys, costmodel; print([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    assert ran.stderr == ""


def test_public_names_are_documented() -> None:
    import costmodel

    assert costmodel.__all__ == sorted(costmodel.__all__)
    for name in costmodel.__all__:
        assert getattr(costmodel, name).__doc__, name


def test_the_readme_draws_every_room() -> None:
    text = (PACKAGE.parent / "README.md").read_text()
    for name, floor in FLOORS.items():
        if not name.startswith("__"):
            row = next(line for line in text.splitlines() if f"`{name}`" in line or f"`{name}/`" in line)
            assert row.startswith(f"| {floor} |"), f"{name} stands on floor {floor}"


def test_the_matrix_refuses_a_job_that_it_has_not() -> None:
    matrix = PACKAGE.parent / ".ci" / "matrix"
    ran = subprocess.run(["bash", str(matrix), "3.99"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "no job 3.99; there are: 3.11 3.12 3.13 oldest\n")
