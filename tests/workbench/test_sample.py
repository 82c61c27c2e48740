import numpy as np
import pytest

from workbench.errors import BadInput
from workbench.sample import sample
from workbench.splits import draw
from workbench.structure import in_category
from workbench.task import Problems


@pytest.mark.parametrize("variant", ["all", "ordered", "subtraction"])
def test_without_a_category_it_is_the_draw(variant):
    np.testing.assert_array_equal(sample(5_000, 3, variant).index, draw(3, 5_000, variant))


@pytest.mark.parametrize(("variant", "category"), [("all", "M2"), ("ordered", "3 borrows"), ("addition", "S3")])
def test_a_category_is_the_draw_with_the_rest_left_out(variant, category):
    drawn = Problems.from_index(draw(3, 400_000, variant))
    expected = drawn[in_category(drawn, category)].index[:1_000]
    assert len(expected) == 1_000
    found = sample(1_000, 3, variant, category)
    np.testing.assert_array_equal(found.index, expected)
    np.testing.assert_array_equal(sample(10, 3, variant, category).index, expected[:10])


def test_a_rare_category_takes_as_many_rounds_as_it_needs():
    found = sample(1_000, 0, "all", "S4")  # one problem in 4,500
    assert len(np.unique(found.index)) == 1_000 and in_category(found, "S4").all()


@pytest.mark.parametrize(
    ("count", "variant", "category"),
    [(60_000, "all", "S4"), (1, "ordered", "-"), (1, "addition", "M0"), (1, "subtraction", "1 carry")],
)
def test_more_than_a_category_holds_is_refused(count, variant, category):
    said = f"category '{category}' of the variant {variant} holds too few .* 4,000,000 draws met .*ask for fewer"
    with pytest.raises(BadInput, match=said):  # within the first few rounds, not after the whole domain
        sample(count, 0, variant, category)


def test_what_cannot_be_a_sample_is_refused():
    for count in (0, -1, 10_000_001):
        with pytest.raises(BadInput, match="ask for 1 to 10,000,000"):
            sample(count, 0)
    with pytest.raises(BadInput, match="unknown category 'S9'"):
        sample(1, 0, "all", "S9")
    with pytest.raises(BadInput, match="seed"):
        sample(1, -1)
