from husk.cli.kit.late import late, loaded


def test_what_is_late_is_loaded_when_it_is_called():
    read = late("colorsys:rgb_to_hsv")
    assert read(0, 0, 0) == (0.0, 0.0, 0)
    assert loaded("colorsys:rgb_to_hsv")(0, 0, 0) == (0.0, 0.0, 0)
