"""The source keeps its shape: imports point one way, heavy libraries stay in their corner, pieces stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "llmfeas"
MODULES = sorted(ROOT.rglob("*.py"))

LAYERS = (
    {"contract", "derivation", "errors", "ranges", "record", "text", "units"},
    {"autograd"},
    {"load"},
    {
        "adapters",
        "catalog",
        "elsewhere",
        "findings",
        "objectives",
        "optimizers",
        "options",
        "request",
        "scenario",
        "settings",
    },
    {"model", "importers", "machine"},
    {"walk"},
    {"workload"},
    {"memory"},
    {"timing"},
    {"settle"},
    {"feasibility"},
    {"planning"},
    {"check"},
    {"evidence", "render"},
    {"page"},
    {"cli"},
)
"""A module may import from its own layer and from those before it."""

STRANGERS = (
    {"model", "importers", "machine"},
    {"check", "render"},
    {"evidence", "render"},
)
"""Packages that do not know each other, although their layers would let them."""

CORNERS = {
    "click": ("cli/",),
    "rich": ("render/formats/table.py", "cli/terminal.py"),
    "yaml": ("catalog/document.py",),
    **dict.fromkeys(("anyio", "jsonschema", "mcp", "mcp_types"), ("cli/commands/mcp.py",)),
    **dict.fromkeys(("calibration", "numpy", "scipy"), ()),
}
LAZY = ("click", "rich", "yaml", "pydantic", "anyio", "jsonschema", "mcp", "mcp_types", "dataclasses")
"""Libraries that cost start-up time; only the corners below may import them when they are imported themselves."""
EAGER_CORNERS = {
    "click": ("cli/",),
    "yaml": ("catalog/document.py",),
    "rich": ("render/formats/table.py",),
    "dataclasses": ("catalog/validation.py", "cli/", "machine/", "render/"),
    "pydantic": ("catalog/validation.py", "evidence/", "importers/"),
}

PURE = ("autograd", "model", "walk", "workload", "memory", "timing", "settle", "feasibility")
LOADERS = tuple(f"llmfeas.catalog.{name}" for name in ("store", "overlay", "overlay_file", "document"))

LONGEST_MODULE = 400
LONGEST_FUNCTION = 40


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_of(path: Path) -> str:
    return name_of(path).split("/")[0].removesuffix(".py")


def layer_of(package: str) -> int:
    return next(index for index, layer in enumerate(LAYERS) if package in layer)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every module that is imported, absolute, with its line."""
    package = ["llmfeas", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield source, node.lineno
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)


def own_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the packages of llmfeas that a module imports."""
    for module, line in imports(path, parsed(path)):
        parts = module.split(".")
        if parts[0] == "llmfeas" and len(parts) > 1 and any(parts[1] in layer for layer in LAYERS):
            yield parts[1], line


def module_of(path: Path) -> str:
    return ".".join(("llmfeas", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def test_no_modules_import_each_other_not_even_late_nor_for_type_checkers() -> None:
    """Names of a package are taken for what they are: its modules, or what its `__init__` defines."""
    known = {module_of(path): path for path in MODULES}
    del known["llmfeas"]  # its version is asked for from everywhere
    graph = {name: set(modules_imported(path, known)) - {name} for name, path in known.items()}
    assert list(TopologicalSorter(graph).static_order())


def modules_imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of llmfeas that a module imports; a package where it takes what that defines itself."""
    package = ["llmfeas", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found = (f"{source}.{alias.name}" for alias in node.names)
            yield from (name if name in known else source for name in found if name in known or source in known)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def test_below_the_command_line_names_that_are_computed_name_what_is_beside() -> None:
    """An import by name would go any way, unseen by the tests above."""
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module" and package_of(path) != "cli":
                assert "__name__" in ast.unparse(node), path


def eager(tree: ast.Module) -> ast.Module:
    """Keep what runs when a module is imported: no function bodies, nothing for type checkers only."""

    class Outside(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - as ast names it

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)

    return Outside().visit(tree)  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    package = package_of(path)
    if package in ("__init__", "__main__"):
        return
    for imported, line in own_imports(path):
        where = f"{name_of(path)}:{line} imports {imported}"
        assert layer_of(imported) <= layer_of(package), where
        assert package == imported or not any({package, imported} <= group for group in STRANGERS), where


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_stay_in_their_corner(path: Path) -> None:
    for module, line in imports(path, parsed(path)):
        library = module.split(".")[0]
        if library in CORNERS:
            assert name_of(path).startswith(CORNERS[library]), f"{name_of(path)}:{line} imports {library}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_when_needed(path: Path) -> None:
    for module, line in imports(path, eager(parsed(path))):
        library = module.split(".")[0]
        if library in LAZY:
            assert name_of(path).startswith(EAGER_CORNERS.get(library, ())), f"{name_of(path)}:{line} imports {library}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{name_of(path)}:{node.lineno} {node.name} has {length} lines"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_what_is_public_says_what_it_is(path: Path) -> None:
    tree = parsed(path)
    assert ast.get_docstring(tree), name_of(path)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for owner in (tree, *classes):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{name_of(path)}:{node.lineno} {node.name} has no docstring"


def test_no_class_shares_its_name() -> None:
    """One meaning a name."""
    named: dict[str, set[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                named.setdefault(node.name, set()).add(name_of(path))
    twice = {name for name, places in named.items() if len(places) > 1}
    assert twice == set()


@pytest.mark.parametrize("path", [path for path in MODULES if package_of(path) in PURE], ids=name_of)
def test_what_a_question_rests_on_is_handed_down(path: Path) -> None:
    """Below a settled question nothing is looked up: of its loaders these packages know the catalog alone."""
    for module, line in imports(path, parsed(path)):
        loader = module if module in LOADERS else module.rpartition(".")[0]
        known = module in LOADERS or module == "llmfeas.catalog.store.Catalog"
        assert loader not in LOADERS or known, f"{name_of(path)}:{line} imports {module}"


def test_no_module_hides_from_the_layers() -> None:
    known = set().union(*LAYERS) | {"__init__", "__main__"}
    assert {package_of(path) for path in MODULES} <= known


def test_the_walker_sees_what_it_should(tmp_path: Path) -> None:
    """A wrong import is found, wherever it hides: the checks above can fail."""
    source = "from ..cli import app\ndef f():\n    import yaml\nif TYPE_CHECKING:\n    import rich\n"
    path = ROOT / "catalog" / "pretend.py"
    tree = ast.parse(source)
    assert ("llmfeas.cli", 1) in list(imports(path, tree))
    assert {"yaml", "rich"} <= {module for module, _ in imports(path, tree)}
    assert not {"yaml", "rich"} & {module for module, _ in imports(path, eager(ast.parse(source)))}
