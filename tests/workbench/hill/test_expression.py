import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import BadInput
from workbench.hill.expression import Expression, parse

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "name", "operands", "shown"),
    [
        ("1339.7364 - 2.7364", "subtract", ("1339.7364", "2.7364"), "1339.7364 - 2.7364"),
        ("-5 - -3", "subtract", ("-5", "-3"), "-5 - -3"),
        ("-5--3", "subtract", ("-5", "-3"), "-5 - -3"),
        ("5-3", "subtract", ("5", "3"), "5 - 3"),
        ("1e-5-3", "subtract", ("1e-5", "3"), "1e-5 - 3"),
        ("5 + 0", "add", ("5", "0"), "5 + 0"),
        ("+5 + +3", "add", ("+5", "+3"), "+5 + +3"),
        ("3 x 4", "multiply", ("3", "4"), "3 x 4"),
        ("3x4", "multiply", ("3", "4"), "3 x 4"),
        ("3 * -4", "multiply", ("3", "-4"), "3 x -4"),
        (".5 / 2.", "divide", (".5", "2."), ".5 / 2."),
        ("- 5", "negation", ("5",), "- 5"),
        ("-5", "negation", ("5",), "- 5"),
        ("- -5", "negation", ("-5",), "- -5"),
        ("+ 1E+5", "identity", ("1E+5",), "+ 1E+5"),
        ("2 ^ 1", "power-identity", ("2",), "2 ^ 1"),
        ("2 ^ 1.0", "power-identity", ("2",), "2 ^ 1"),
        ("-2^-1", "reciprocal", ("-2",), "(-2) ^ -1"),
        ("cos 0.5", "cos", ("0.5",), "cos 0.5"),
        ("sin -0.5", "sin", ("-0.5",), "sin -0.5"),
        ("mix 1", "mix", ("1",), "mix 1"),
        ("cos-difference 1 -2", "cos-difference", ("1", "-2"), "cos-difference 1 -2"),
        ("  sin-sum   1   2 ", "sin-sum", ("1", "2"), "sin-sum 1 2"),
        ("divide 1 3", "divide", ("1", "3"), "1 / 3"),
        ("reciprocal 4", "reciprocal", ("4",), "4 ^ -1"),
    ],
)
def test_what_is_understood(text, name, operands, shown):
    found = parse(text)
    assert found == Expression(name, operands)
    assert str(found) == shown


def test_a_power_between_the_selections_keeps_its_exponent():
    assert parse("-8 ^ .25") == Expression("power", ("-8",), ".25")
    assert str(parse("-8 ^ .25")) == "(-8) ^ .25"
    assert parse("2 ^ 0") == Expression("power", ("2",), "0")


@given(finite, finite, st.sampled_from([("+", "add"), ("-", "subtract"), ("x", "multiply"), ("/", "divide")]))
def test_every_float_python_writes_is_read_back(a, b, operation):
    symbol, name = operation
    for text in (f"{a!r} {symbol} {b!r}", f"{a!r}{symbol}{b!r}"):
        found = parse(text)
        assert found.name == name and tuple(map(float, found.operands)) == (a, b)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is not one operation"),
        ("5", "'5' is not one operation"),
        ("3 x", "not one operation"),
        ("1 + 2 + 3", "not one operation"),
        ("1 + two", "not one operation"),
        ("1 + inf", "not one operation"),
        ("1 + nan", "not one operation"),
        ("1_000 + 1", "not one operation"),
        ("0x10 + 1", "not one operation"),
        ("1,5 + 1", "not one operation"),
        ("\N{ARABIC-INDIC DIGIT ONE} + 1", "not one operation"),
        ("3 a.txt b.txt 4", "not one operation"),  # what a shell makes of a bare *
        ("1 + 2\n3", "not one operation"),
        ("foo 2", "unknown operation 'foo'; choose from add"),
        ("power 2", "unknown operation 'power'"),
        ("cos 1 2", "cos takes 1 number, 2 were given"),
        ("add 1", "add takes 2 numbers, 1 were given"),
        ("2 ^ 2", "no power of 2; for a square, 2 x 2"),
        ("2 ^ -1.5", "lies between -1 and 1, so it raises to no power of -1.5"),
        ("2 ^ 1e400", "no power of 1e400"),
        ("1" * 201, "201 characters"),
    ],
)
def test_what_is_refused(text, says):
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert says in str(caught.value) and "\n" not in str(caught.value).replace("\\n", "")
