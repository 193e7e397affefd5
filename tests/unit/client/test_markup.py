from husk.client import markup


def test_cells_of_a_table_are_words():
    shown = markup.table(["name"], [["<img src=x onerror=alert(1)>"]])
    assert shown.count("<td") == 1 and "<img" not in shown and "&lt;img" in shown
