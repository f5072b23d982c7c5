"""Derived columns: mapped, joined, computed."""

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.space.derived import Computed, Joined, Mapped
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space

VM = Categorical("vm", ["small", "large"])
NODES = Integer("nodes", 1, 3)
MACHINES = {"type": ["large", "small", "huge"], "ram": [8, 2, 32], "arch": ["arm", "x86", "x86"]}


def build(*derived, parameters=(VM, NODES)):
    return Space.build(parameters, derived=derived, price=1)


def test_later_columns_may_use_earlier_ones():
    space = build(
        Joined({"vm": "type"}, MACHINES),
        Computed("total_ram", "ram * nodes"),
        Mapped("crowded", "total_ram", {2: True, 4: True, 6: False, 8: False, 16: False, 24: False}),
    )
    assert space.column("ram").tolist() == [2, 2, 2, 8, 8, 8]
    assert space.column("total_ram").tolist() == [2, 4, 6, 8, 16, 24]
    assert space.column("crowded").tolist() == [True, True, False, False, False, False]
    assert space.feature_names == ("vm", "nodes", "ram", "total_ram", "crowded")
    assert space.feature_kinds == ("categorical", "numeric", "numeric", "log", "categorical")


def test_text_is_a_feature_only_when_asked_for_and_numbers_unless_refused():
    assert build(Joined({"vm": "type"}, MACHINES)).feature_names == ("vm", "nodes", "ram")
    assert build(Joined({"vm": "type"}, MACHINES, feature=True)).feature_names == ("vm", "nodes", "ram", "arch")
    assert build(Joined({"vm": "type"}, MACHINES, feature=False)).feature_names == ("vm", "nodes")
    assert build(Joined({"vm": "type"}, MACHINES, feature=["arch"])).feature_names == ("vm", "nodes", "arch")
    assert list(build(Joined({"vm": "type"}, MACHINES, columns=["ram"])).columns) == ["vm", "nodes", "ram"]


def test_a_table_may_be_rows_and_have_two_keys():
    table = [{"vm": vm, "nodes": nodes, "score": nodes * len(vm)} for vm in VM.values for nodes in NODES.values]
    assert build(Joined(["vm", "nodes"], table)).column("score").tolist() == [5, 10, 15, 5, 10, 15]


def test_what_follows_from_an_inactive_parameter_is_inactive():
    disk = Categorical("disk", ["ssd", "hdd"], when="nodes > 2")
    space = build(
        Mapped("speed", "disk", {"ssd": 500, "hdd": 100}),
        Joined("disk", [{"disk": "ssd", "gb": 10}, {"disk": "hdd", "gb": 40}]),
        Computed("sum", "speed + gb"),
        parameters=(NODES, disk),
    )
    assert space.column("speed").tolist() == [None, None, 500, 100]
    assert space.column("gb").tolist() == [None, None, 10, 40]
    assert space.column("sum").tolist() == [None, None, 510, 140]
    assert space.features[:, space.feature_names.index("gb")].tolist() == [-20, -20, 10, 40]


@pytest.mark.parametrize(
    ("derived", "words"),
    [
        (Mapped("m", "vmm", {"small": 1}), "'m' needs the unknown column 'vmm'. Did you mean 'vm'?"),
        (Mapped("m", "vm", {"small": 1, "larg": 2}), "has no value for 'large' of 'vm'. Did you mean 'larg'?"),
        (Mapped("m", "vm", {}), "value: result pairs"),
        (Mapped("m", "vm", {"small": 1, "large": np.nan}), "result of 'large' is nan"),
        (Mapped("m", "vm", {"small": 1, "large": [2]}), "result of 'large' is a list, but"),
        (Mapped("nodes", "vm", {"small": 1, "large": 2}), "'nodes' has the name of another column"),
        (Mapped("", "vm", {"small": 1, "large": 2}), "named '', but a text"),
        (Computed("c", "nodes + ram"), "Computed column 'c': 'nodes + ram' uses the unknown name 'ram'"),
        (Computed("c", "nodes +"), "cannot be read"),
        (Joined("vm", MACHINES), "The table joined by vm has no column 'vm'"),
        (Joined("vn", MACHINES), "needs the unknown column 'vn'. Known are 'vm', 'nodes'."),
        (Joined([], MACHINES), "at least one key"),
        (Joined({"vm": "type"}, MACHINES, columns=["rma"]), "no column 'rma'. Did you mean 'ram'?"),
        (Joined("vm", {"vm": ["small"], "ram": [2]}), "no row for vm = large. It has small."),
        (Joined("vm", {"vm": ["small", "larger"], "ram": [2, 3]}), "Did you mean 'larger'?"),
        (Joined("vm", {"vm": ["small", "large", "small"], "ram": [2, 8, 3]}), "small in rows 1 and 3"),
        (Joined("vm", {"vm": ["small", "large"], "ram": [2]}), "different lengths"),
        (Joined("vm", []), "is empty"),
        (Joined("vm", {}), "is empty"),
        (Joined("vm", [{"vm": "small", "ram": 1}, {"vm": "large"}]), "rows 1 and 2 differ in the column 'ram'"),
        (Joined("vm", {"vm": ["small", "large"], "ram": [2, np.inf]}), "column 'ram', row 2 is inf"),
        ("ram", "'ram' is not a derived column"),
    ],
)
def test_errors_name_the_column_and_the_known_values(derived, words):
    with pytest.raises(InputError) as caught:
        build(derived)
    assert words in str(caught.value)
