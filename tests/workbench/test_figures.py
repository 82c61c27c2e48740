import numpy as np
import plotly.io as pio

from workbench import figures


def _luminance(colour):
    """Relative luminance of WCAG 2.1."""
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_the_palette_is_the_published_one():
    """RGB from 0 to 255 as Okabe & Ito print it."""
    table = {
        figures.BLACK: (0, 0, 0),
        figures.ORANGE: (230, 159, 0),
        figures.SKY: (86, 180, 233),
        figures.GREEN: (0, 158, 115),
        figures.YELLOW: (240, 228, 66),
        figures.BLUE: (0, 114, 178),
        figures.VERMILLION: (213, 94, 0),
        figures.PURPLE: (204, 121, 167),
    }
    assert set(figures.PALETTE) == set(table)
    for colour, rgb in table.items():
        assert tuple(bytes.fromhex(colour[1:])) == rgb


def test_the_colours_used_first_stand_out_from_the_page_as_graphics_must():
    for colour in (figures.BLUE, figures.VERMILLION, figures.GREEN, figures.GREY):
        assert 1.05 / (_luminance(colour) + 0.05) >= 3  # WCAG 2.1, 1.4.11


def test_a_figure_has_the_house_look_and_leaves_plotly_as_it_was():
    before = pio.templates.default
    made = figures.figure("Title", "what is shown", x="steps", y="loss (nats)", height=321)
    assert pio.templates.default == before
    assert (made.layout.title.text, made.layout.title.subtitle.text) == ("Title", "what is shown")
    assert (made.layout.xaxis.title.text, made.layout.yaxis.title.text) == ("steps", "loss (nats)")
    assert made.layout.height == 321
    assert made.layout.template.layout.colorway == figures.PALETTE


def test_positions_are_labelled_by_the_token_that_stands_there():
    assert "".join(figures.position_labels()) == "a3a2a1a0opb3b2b1b0=sd4d3d2d1d0"
    assert figures.position_labels([9, 10, 14]) == ["=", "s", "d1"]


def test_error_bars_reach_from_low_to_high():
    bars = figures.error_bars([2.0, 5.0], [1.5, 5.0], [4.0, 6.0])
    assert bars["array"].tolist() == [2.0, 1.0] and bars["arrayminus"].tolist() == [0.5, 0.0]
    assert not bars["symmetric"]
