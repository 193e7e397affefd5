"""No module imports, in however many steps, what imports it: whoever reads the code can begin at the bottom."""

import graphlib

import grimp


def test_no_module_is_in_a_circle_of_imports() -> None:
    graph = grimp.build_graph("husk", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        raise AssertionError("imports in a circle: " + " <- ".join(error.args[1])) from None
